// Training in processes that a test has forked, over the simulated NCCL, with verification.
#pragma once

#include <string>

#include "exec/nccl/socket_transport.h"
#include "exec/runtime/execute.h"
#include "sim/ir/lower.h"
#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {

struct NcclTrained {
  exec::Execution execution;
  std::string verification;  ///< "right" or what was wrong; only at rank 0
  std::string device;
};

/// Runs this process's part of a warm-up step and a measured step. Throws Error if the program
/// cannot be trained.
NcclTrained train_program_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                                    const Program& program, exec::BackendRequest request = {},
                                    const BubblescopeGpu& gpu = fake_gpu_calls());

/// The same for a schedule, which is lowered first.
NcclTrained train_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                            const LowerOptions& lowering = {}, exec::BackendRequest request = {},
                            const BubblescopeGpu& gpu = fake_gpu_calls());

/// The message of the breakdown; "none" if there was none.
std::string breakdown_of(const NcclTrained& trained);

}  // namespace bubblescope::tests
