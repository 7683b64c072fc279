// Parts of the program that are loaded only when asked for, so that it starts where what they are
// linked to is missing.
#pragma once

#include <string>

#include "sim/ir/error.h"

namespace bubblescope::exec {

/// A shared library of ours and the words for what goes wrong with it.
struct ModuleFile {
  std::string path;
  std::string user;        ///< "the backend nccl"
  std::string missing;     ///< where there is no such file: what to do; empty: as `unloadable`
  std::string unloadable;  ///< where it is not loaded, before the loader's own words
  bool is_global = false;  ///< its names are seen by libraries that are loaded later
};

/// The path of a module: beside the program; else where it is installed relative to the program,
/// whether it is there or not. Never in any other folder: what is found there is run.
std::string find_module(const std::string& name);

/// Loads a module for good. Throws Error (Fault::kMachine) that says what to do.
void* load_module(const ModuleFile& file);

/// A function of a loaded module. Throws Error where it has none of this name.
void* find_symbol(void* module, const ModuleFile& file, const char* name);

template <class Function>
Function* find_function(void* module, const ModuleFile& file, const char* name) {
  return reinterpret_cast<Function*>(find_symbol(module, file, name));
}

/// Loads a module that consists of a table of calls, and opens it by its one function, which
/// returns null and an error in words where it cannot run. The table stays.
template <class Table>
const Table& open_table(const ModuleFile& file, const char* opener) {
  using Open = const Table*(const char** error);
  const char* error = nullptr;
  const Table* const table = find_function<Open>(load_module(file), file, opener)(&error);
  if (table == nullptr) throw Error(Fault::kMachine, file.user + " cannot run here: " + error);
  return *table;
}

}  // namespace bubblescope::exec
