// A job of several processes reports its devices, and which GEMMs used epilogues.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "exec/nccl/nccl_place.h"
#include "exec/runtime/execute.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_nccl.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

/// Runs two steps of 1F1B and returns the description of the device and the epilogues:
/// "0000:01:00.0; GELU within ...".
std::string tell_of_job(exec::SocketTransport& link) {
  FakeGpu& gpu = reset_fake_gpu(1);
  const std::string bus = "0000:0" + std::to_string(link.self().rank + 1) + ":00.0";
  bus.copy(gpu.devices[0].bus, bus.size());
  gpu.knows_epilogues = link.self().rank == 0;
  const Schedule schedule =
      build_schedule(find_schedule("1f1b"), {{link.self().count, 1, 4, 1, {}}, {}, {}});
  const Program program = std::get<Program>(lower(schedule, {}));
  const exec::TrainingOptions options = small_model(2);
  exec::DeviceOptions device;
  device.epilogue = exec::Epilogue::kFused;
  const ValidSchedule valid = require_valid(schedule);
  const exec::JobRequest request{valid, program, &options, {}, exec::WaitMode::kSpin, device};
  const exec::Job job =
      exec::start_nccl_job({fake_gpu_calls(), fake_nccl_calls(), link, 0}, request, {});
  exec::execute(program, *job.backend, "nccl", {1, 1, job.after_step});
  std::string told;
  for (const std::string& one : job.buses) told += one + "; ";
  return told + to_string(job.epilogues());
}

// The devices of ranks 0 and 1 differ in whether they have GEMMs with epilogues. Both processes
// report both kinds, and each reports its own device.
TEST(NcclJob, ReportsItsDeviceAndTheEpiloguesOfAllRanks) {
  const std::vector<RankEnd> ends = run_ranks(2, tell_of_job);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].said.rfind("0000:01:00.0; ", 0), 0u) << ends[0].said;
  EXPECT_EQ(ends[1].said.rfind("0000:02:00.0; ", 0), 0u) << ends[1].said;
  const std::string epilogues = ends[0].said.substr(14);
  EXPECT_EQ(ends[1].said.substr(14), epilogues);
  EXPECT_NE(epilogues.find("GELU within"), epilogues.npos) << epilogues;
  EXPECT_NE(epilogues.find("cuBLASLt cannot fuse"), epilogues.npos) << epilogues;
}

}  // namespace
}  // namespace bubblescope::tests
