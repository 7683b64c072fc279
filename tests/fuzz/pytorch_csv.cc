// Fuzzes PyTorch's CSV: what is accepted must come back from what is written.
#include "traces/pytorch_csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "sim/ir/error.h"

namespace {

using namespace bubblescope;

void expect_round_trip(const Schedule& schedule) {
  const std::string text = posts_messages(schedule)
                               ? write_pytorch_csv_comms(require_valid(schedule))
                               : write_pytorch_csv(schedule);
  if (read_pytorch_csv(text, "fuzz.csv") == schedule) return;
  std::fprintf(stderr, "another schedule came back from:\n%s", text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    expect_round_trip(read_pytorch_csv({reinterpret_cast<const char*>(data), size}, "fuzz.csv"));
  } catch (const Error&) {  // refused
  }
  return 0;
}
