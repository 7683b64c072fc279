// Functions of libraries that are opened when they are needed.
#pragma once

#include <dlfcn.h>

namespace bubblescope {

/// Puts the library's function of that name there; false: it has none.
template <class Function>
bool find_call(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace bubblescope
