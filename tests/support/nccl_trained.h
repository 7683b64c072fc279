// Training in processes that were forked from a test, over the fake NCCL, and its proof.
#pragma once

#include <string>

#include "exec/nccl/socket_transport.h"
#include "exec/runtime/execute.h"
#include "sim/ir/lower.h"
#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {

struct NcclTrained {
  exec::Execution execution;
  std::string verification;  ///< "right" or what was wrong; rank 0's
  std::string device;
};

/// Two steps, of which one warms up, of this process's part. Throws Error for what cannot be
/// trained.
NcclTrained train_program_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                                    const Program& program, exec::BackendRequest request = {},
                                    const BubblescopeGpu& gpu = fake_gpu_calls());

/// Of what the schedule is lowered to.
NcclTrained train_over_nccl(exec::SocketTransport& link, const Schedule& schedule,
                            const LowerOptions& lowering = {}, exec::BackendRequest request = {},
                            const BubblescopeGpu& gpu = fake_gpu_calls());

/// "none" where it went through.
std::string breakdown_of(const NcclTrained& trained);

}  // namespace bubblescope::tests
