// Ends a process that misuses CUDA.
#pragma once

#include <string>

namespace bubblescope::tests::fake_cuda {

/// Prints the misuse and ends the process.
[[noreturn]] void refuse(const std::string& text);

}  // namespace bubblescope::tests::fake_cuda
