// The locations of the program, the source tree and the reference data. Only test_paths.cc is
// compiled with these paths, so the objects of all other tests are the same in every checkout.
#pragma once

#include <string>

namespace bubblescope::tests {

/// The program under test.
std::string program_path();

/// The top of the source tree.
std::string source_folder();

/// The folder with the reference data: $BUBBLESCOPE_SHARED_DATA, or the one set at build time.
std::string reference_folder();

}  // namespace bubblescope::tests
