// Writes break-even values for people.
#include "traces/plans/break_even_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace bubblescope::traces {

namespace {

/// The value to five digits: the first gain that rounding does not hide is a few nanoseconds beyond
/// the tie. All digits where it would be the current value.
Nanos round_value(const BreakEven& found) {
  Nanos step = 1;
  while (found.at / step >= 100'000) step *= 10;
  const Nanos rounded = (found.at + step / 2) / step * step;
  return rounded == found.now ? found.at : rounded;
}

/// Returns the field of a parameter: `total_w` for "total-w".
std::string field_of(std::string parameter) {
  std::replace(parameter.begin(), parameter.end(), '-', '_');
  return '`' + parameter + '`';
}

}  // namespace

std::string write_break_evens(const PlanTable& table) {
  std::string text;
  for (const BreakEven& found : table.break_evens)
    text += fmt::format("  while {:<5} {} {:<13} then {} (now {})\n", field_of(found.parameter),
                        found.at > found.now ? "<" : ">", to_text(round_value(found)),
                        found.runner_up.schedule, to_text(found.now));
  std::string unaffected;
  for (const std::string& parameter : table.unaffected)
    unaffected += (unaffected.empty() ? "" : " or ") + field_of(parameter);
  if (!unaffected.empty()) text += fmt::format("  whatever {} is\n", unaffected);
  if (text.empty()) return text;
  const std::string best = table.break_even_best.value_or("");
  if (table.not_compared.empty()) return fmt::format("\n{} is best\n", best) + text;
  return fmt::format("\n{} is the best fixed order\n", best) + text +
         fmt::format("  (not compared: {}, which other costs give another order)\n",
                     fmt::join(table.not_compared, ", "));
}

}  // namespace bubblescope::traces
