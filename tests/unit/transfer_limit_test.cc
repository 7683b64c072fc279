// Messages and copies that take 10 days, and a byte more. At 2^-14 gigabits per second a byte takes
// 2^17 ns, so 6 591 796 875 bytes take 864 000 000 000 000 ns, which are 10 days.
#include "sim/model/transfer_limit.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_text.h"
#include "traces/costs/cost_file.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

const std::string kTenDays = "6591796875";
const std::string kLonger = "6591796876";
const std::string kBandwidth = R"("bandwidth_gbps":0.00006103515625})";

/// Reads a cost file with these keys and prices a schedule by it. Returns the refusal.
std::string refusal_of(const std::string& schedule, const std::string& keys) {
  return error_of([&] {
    const CostTable costs =
        traces::parse_cost_file("{\"format\":\"bubblescope-costs/1\"," + keys + "}", "f.json");
    make_cost_model(costs, traces::parse_schedule_text(schedule, "two"));
  });
}

std::string refuse_message(const std::string& bytes) {
  return refusal_of("0F0 0B0 | 1F0 1B0",
                    R"("forward":1,"backward":1,"message":{"bytes":)" + bytes + "," + kBandwidth);
}

std::string refuse_message_of_stage(const std::string& bytes) {
  return refusal_of("0F0 0B0 | 1F0 1B0",
                    R"("stages":[{"forward":1,"backward":1,"message_bytes":)" + bytes +
                        R"(},{"forward":1,"backward":1}],"message":{)" + kBandwidth);
}

std::string refuse_copy(const std::string& bytes) {
  return refusal_of(
      "0F0 0F1 0EVICT0 0B1 0LOAD0 0B0 | 1F0 1F1 1B1 1B0",
      R"("forward":1,"backward":1,"activation_bytes":)" + bytes + R"(,"copy":{)" + kBandwidth);
}

TEST(TransferLimit, IsTenDays) {
  EXPECT_EQ(kMaxTransferNanos, 864e12);
  EXPECT_EQ(refuse_message(kTenDays), "");
  EXPECT_EQ(refuse_message_of_stage(kTenDays), "");
  EXPECT_EQ(refuse_copy(kTenDays), "");
}

TEST(TransferLimit, RefusesAByteMore) {
  EXPECT_EQ(refuse_message(kLonger),
            "f.json: /message: takes longer than 10 days; correct 'bytes' or 'bandwidth_gbps'");
  EXPECT_NE(refuse_message_of_stage(kLonger).find("a message takes longer than 10 days"),
            std::string::npos);
  EXPECT_NE(refuse_copy(kLonger).find("a copy takes longer than 10 days"), std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
