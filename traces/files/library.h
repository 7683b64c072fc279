// Loads libraries at run time, and looks up their functions.
#pragma once

#include <initializer_list>
#include <string>

namespace bubblescope::traces {

struct LoadedLibrary {
  void* handle = nullptr;  ///< null if none of the libraries can be loaded
  std::string obstacle;    ///< then why the last one cannot, in the loader's words
};

/// Loads the first of these libraries that can be loaded, and never unloads it.
LoadedLibrary load_library(std::initializer_list<std::string> names);

/// The library's function of this name; null if there is none.
void* find_symbol(const LoadedLibrary& library, const char* name);

/// Sets `function` to the library's function of this name; returns false if there is none.
template <class Function>
bool find_function(const LoadedLibrary& library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(find_symbol(library, name));
  return function != nullptr;
}

}  // namespace bubblescope::traces
