// Creates the folder.
#include "tests/support/temporary_folder.h"

#include <cstdlib>

namespace bubblescope::tests {

void TemporaryFolder::SetUp() {
  std::string name = (std::filesystem::temp_directory_path() / "bubblescope-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  folder_ = name;
}

}  // namespace bubblescope::tests
