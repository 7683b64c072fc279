// The paths come from CMake, as definitions of this file alone.
#include "tests/support/test_paths.h"

#include <cstdlib>

namespace bubblescope::tests {

std::string program_path() { return BUBBLESCOPE_BINARY; }

std::string source_folder() { return BUBBLESCOPE_SOURCE_DIR; }

std::string reference_folder() {
  const char* const folder = std::getenv("BUBBLESCOPE_SHARED_DATA");
  return folder != nullptr ? folder : BUBBLESCOPE_SHARED_DATA;
}

}  // namespace bubblescope::tests
