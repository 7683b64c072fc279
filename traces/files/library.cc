// Calls the loader of the system.
#include "traces/files/library.h"

#include <dlfcn.h>

namespace bubblescope::traces {

LoadedLibrary load_library(std::initializer_list<std::string> names) {
  LoadedLibrary library;
  for (const std::string& name : names) {
    library.handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle != nullptr) return library;
    library.obstacle = dlerror();
  }
  return library;
}

void* find_symbol(const LoadedLibrary& library, const char* name) {
  return dlsym(library.handle, name);
}

}  // namespace bubblescope::traces
