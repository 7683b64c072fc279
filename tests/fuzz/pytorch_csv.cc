// Fuzzes PyTorch's CSV: what is accepted must come back from what is written.
#include "traces/schedules/pytorch_csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/ir/error.h"
#include "sim/ir/posted_kinds.h"

namespace {

using namespace bubblescope;

/// Compute-only files leave collectives out.
bool has_collectives(const Schedule& schedule) {
  for (const RankOrder& cells : schedule.posted)
    for (const Op& op : cells)
      if (!is_compute(op.kind) && op.kind != OpKind::kIdle) return true;
  return false;
}

void refuse(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s came back from:\n%s", what, text.c_str());
  std::abort();
}

/// The release whose lists are those of the file is given the file back, the other its own lists.
void expect_round_trip(const Schedule& schedule) {
  if (!posts_messages(schedule)) {
    const std::string text = traces::write_pytorch_csv(schedule);
    const Schedule again = traces::read_pytorch_csv(text, "fuzz.csv");
    if (traces::write_pytorch_csv(again) != text) refuse("another file", text);
    if (!has_collectives(schedule) && again != schedule) refuse("another schedule", text);
    return;
  }
  for (const auto release : {PytorchRelease::kFrom26, PytorchRelease::kFrom215}) {
    const std::string text = traces::write_pytorch_csv_comms(require_valid(schedule), {release});
    const Schedule again = traces::read_pytorch_csv(text, "fuzz.csv");
    if (traces::write_pytorch_csv_comms(require_valid(again), {release}) != text)
      refuse("another file", text);
    const bool own = posts_waits(schedule) == (release == PytorchRelease::kFrom215);
    if (own && again != schedule) refuse("another schedule", text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    expect_round_trip(
        traces::read_pytorch_csv({reinterpret_cast<const char*>(data), size}, "fuzz.csv"));
  } catch (const Error&) {  // refused
  }
  return 0;
}
