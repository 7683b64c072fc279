// 1F1B as PyTorch before 2.15 posts it: without waits and reductions.
#pragma once

namespace bubblescope::tests {

inline constexpr const char* kOldLists =
    "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
    "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1";

}  // namespace bubblescope::tests
