// Finds modules relative to the program's own folder, and loads them.
#include "exec/runtime/module.h"

#include <dlfcn.h>

#include <filesystem>

namespace bubblescope::exec {

namespace fs = std::filesystem;

std::string find_module(const std::string& name) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  if (fs::exists(folder / name)) return folder / name;
  return folder / BUBBLESCOPE_MODULE_DIR / name;
}

void* load_module(const ModuleFile& file) {
  if (!file.missing.empty() && !fs::exists(file.path))
    throw Error(Fault::kMachine,
                file.user + " needs " + file.path + ", which does not exist: " + file.missing);
  void* const module =
      dlopen(file.path.c_str(), RTLD_NOW | (file.is_global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (module != nullptr) return module;
  throw Error(Fault::kMachine, file.user + file.unloadable + " (" + dlerror() + ")");
}

void refuse_module(const ModuleFile& file, const char* name) {
  throw Error(Fault::kMachine,
              file.path + " has no " + name +
                  "; build and install the program and its module from the same source");
}

}  // namespace bubblescope::exec
