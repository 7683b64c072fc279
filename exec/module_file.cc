// Relative to the program's own folder.
#include "exec/module_file.h"

#include <filesystem>

namespace bubblescope {

std::string find_module_file(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  if (std::filesystem::exists(folder / name)) return folder / name;
  return folder / BUBBLESCOPE_MODULE_DIR / name;
}

}  // namespace bubblescope
