// Reads the keys that report_json.cc writes.
#include "traces/reports/read_report.h"

#include <algorithm>
#include <cmath>

#include "sim/ir/range.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

/// The number of a member; nullopt if it is none. Reports hold times, sizes, counts and ratios:
/// what is below 0 (but for the memory that is missing, and a step that is shorter than the best
/// that fits) or beyond all ranges is not a program's report.
std::optional<double> find_number(const JsonNode& member, bool may_be_negative = false) {
  const std::optional<double> number = member.number();
  if (!number) return {};
  if (std::abs(*number) > static_cast<double>(kMaxNanos) || (*number < 0 && !may_be_negative))
    member.refuse("is not a time, size, count or ratio of a report");
  return number;
}

double find_peak(const JsonNode& ranks) {
  double peak = 0;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const JsonNode rank = ranks[at];
    if (!rank.is_object()) continue;
    if (const std::optional<JsonNode> held = rank.find("peak_activations"))
      peak = std::max(peak, find_number(*held).value_or(0));
  }
  return peak;
}

/// Adds the numbers of an object and of those in it, by the names that conditions have for them.
void add_numbers(const JsonNode& object, const std::string& prefix,
                 std::map<std::string, double>& numbers) {
  if (!object.is_object()) return;
  for (const JsonNode& member : object.members()) {
    const std::string key(member.key());
    if (key == "least_ns" || key == "most_ns") continue;  // old names of min_ns and max_ns
    if (const std::optional<double> number = find_number(member)) numbers[prefix + key] = *number;
    add_numbers(member, prefix + key + "_", numbers);
  }
}

}  // namespace

std::optional<std::map<std::string, double>> read_report_numbers(std::string_view text,
                                                                 const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode report = json.root();
  const std::optional<JsonNode> format = report.is_object() ? report.find("format") : std::nullopt;
  if (!format || !format->is_text() || format->text() != "bubblescope-report/1")
    return std::nullopt;
  std::map<std::string, double> numbers;
  for (const JsonNode& member : report.members()) {
    const std::string key = member.key();
    if (const auto number = find_number(member, key == "head_room_bytes" || key == "vs_best"))
      numbers[key] = *number;
    if (key == "bubble" || key == "noise") add_numbers(member, key + "_", numbers);
    if (key == "serving") add_numbers(member, "", numbers);
  }
  const std::optional<JsonNode> ranks = report.find("ranks");
  if (ranks && ranks->is_array()) numbers["peak_activations"] = find_peak(*ranks);
  return numbers;
}

}  // namespace bubblescope::traces
