// Reads and writes after edges.
#include "traces/schedules/native_after.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "traces/files/quote.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kAfter = " after ";

Op read_op(const JsonNode& node, std::string_view word) {
  const Cell cell = parse_cell(word, CellGrammar::kOwn);
  if (!cell.sound()) node.refuse(fmt::format("{} {}", quote(word), cell.fault));
  if (cell.count != 1 || !occurs_in_order(cell.ops[0].kind))
    node.refuse(fmt::format("{} must be one op of the order, as in '1F1 after 0B0'", quote(word)));
  return cell.ops[0];
}

void read_entry(const JsonNode& node, Schedule& schedule) {
  const std::string& text = node.text();
  const std::size_t at = text.find(kAfter);
  if (at == text.npos)
    node.refuse(
        fmt::format("{} names no edge; write the op that waits, 'after' and the ops that "
                    "must end before it, as in '1F1 after 0B0 2F0'",
                    quote(text)));
  const std::string_view all = text;
  const Op op = read_op(node, strip(all.substr(0, at)));
  std::string_view rest = strip(all.substr(at + kAfter.size()));
  if (rest.empty()) node.refuse(fmt::format("{} awaits nothing; name an op", quote(text)));
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    schedule.after.push_back({op, read_op(node, word)});
    rest = strip(rest.substr(word.size()));
  }
}

}  // namespace

void read_after(const JsonNode& node, Schedule& schedule) {
  const auto after = node.find("after");
  if (!after) return;
  for (std::size_t at = 0; at < after->size(); ++at) read_entry((*after)[at], schedule);
}

void write_after(JsonWriter& json, const Schedule& schedule) {
  if (schedule.after.empty()) return;
  json.line(1).key("after").begin_array();
  std::string entry;
  const AfterEdge* before = nullptr;
  for (const AfterEdge& edge : schedule.after) {
    const bool continues = before != nullptr && before->op == edge.op;
    if (before != nullptr && !continues) json.line_between(2).value(entry);
    if (continues)
      entry += ' ' + to_string(edge.awaited);
    else
      entry = to_string(edge.op) + std::string(kAfter) + to_string(edge.awaited);
    before = &edge;
  }
  json.line_between(2).value(entry);
  json.end_array();
}

}  // namespace bubblescope::traces
