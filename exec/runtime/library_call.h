// Loads libraries at run time, and looks up their functions.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace bubblescope::exec {

/// Loads the first of these libraries that can be loaded, and never unloads it; null if none can.
inline void* open_library(std::initializer_list<std::string> names) {
  for (const std::string& name : names)
    if (void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

/// Sets `function` to the library's symbol of this name; returns false if there is none.
template <class Function>
bool find_call(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace bubblescope::exec
