// Looks up functions in libraries that are loaded at run time.
#pragma once

#include <dlfcn.h>

namespace bubblescope::exec {

/// Sets `function` to the library's symbol of this name; returns false if there is none.
template <class Function>
bool find_call(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace bubblescope::exec
