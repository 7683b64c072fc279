// What becomes of who uses CUDA wrongly.
#pragma once

#include <string>

namespace bubblescope::fake_cuda {

/// Says what is done that no program may do, and ends the process.
[[noreturn]] void refuse(const std::string& text);

}  // namespace bubblescope::fake_cuda
