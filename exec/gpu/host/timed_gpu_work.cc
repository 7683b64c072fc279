// Enqueues kernels that only take time.
#include "exec/gpu/host/timed_gpu_work.h"

#include <utility>

namespace bubblescope::exec {

GpuWork play_on_gpu(const GpuMachine& machine, const Program& program, std::vector<Nanos> durations,
                    WaitMode wait_mode) {
  return [&machine, &program, durations = std::move(durations), wait_mode](InstructionId id,
                                                                           void* stream) {
    if (durations[id] <= 0) return;
    const Instruction& instruction = program.instructions[id];
    const bool is_busy = wait_mode == WaitMode::kSpin && is_compute(instruction.op.kind);
    const std::int32_t blocks = is_busy ? machine.place(instruction.rank).multiprocessors : 0;
    machine.gpu().spin({durations[id], blocks, nullptr}, stream);
  };
}

}  // namespace bubblescope::exec
