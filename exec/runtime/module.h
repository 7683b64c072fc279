// A module is a shared library of ours that is loaded only when a backend needs it. Only the
// modules are linked to CUDA, MPI and NCCL, so the program also starts on machines without them.
#pragma once

#include <string>

#include "exec/runtime/library_call.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

/// A module's file, and the parts of the messages about a failure to load it.
struct ModuleFile {
  std::string path;
  std::string user;        ///< who needs it: "the backend nccl"
  std::string missing;     ///< what to do if there is no such file; empty: `unloadable` is used
  std::string unloadable;  ///< what to say before the loader's own message
  bool is_global = false;  ///< libraries that are loaded later may use its symbols
};

/// The path of a module: beside the program if it is there, else where it is installed relative to
/// the program. No other folder is searched, because the module's code will be run.
std::string find_module(const std::string& name);

/// Loads a module and never unloads it. Throws Error (Fault::kMachine) that says what to do.
void* load_module(const ModuleFile& file);

/// Throws Error: the module has no function of this name.
[[noreturn]] void refuse_module(const ModuleFile& file, const char* name);

/// Finds a function of a loaded module. Throws Error if there is none of this name.
template <class Function>
Function* find_function(void* module, const ModuleFile& file, const char* name) {
  Function* function = nullptr;
  if (!find_call(module, name, function)) refuse_module(file, name);
  return function;
}

/// Loads a module that exports one function, `opener`, which returns a table of calls, or null and
/// an error message if the module cannot run here. The table stays valid.
template <class Table>
const Table& open_table(const ModuleFile& file, const char* opener) {
  using Open = const Table*(const char** error);
  const char* error = nullptr;
  const Table* const table = find_function<Open>(load_module(file), file, opener)(&error);
  if (table == nullptr) throw Error(Fault::kMachine, file.user + " cannot run here: " + error);
  return *table;
}

}  // namespace bubblescope::exec
