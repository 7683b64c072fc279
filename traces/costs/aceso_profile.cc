// Parses the rows of an Aceso profile and groups them into layers.
#include "traces/costs/aceso_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/csv_string.h"

namespace bubblescope::traces {

namespace {

constexpr double kMaxNumber = 1e12;  ///< in us or MiB: no operator comes near it
constexpr std::size_t kMaxLayers = 100'000;

/// Removes the first line from a text and returns it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == text.npos ? std::string_view{} : text.substr(end + 1);
  return line;
}

/// Reads rows by the names of their columns.
class RowReader {
 public:
  RowReader(std::string_view header, const std::string& file)
      : file_(file), columns_(split_csv_line(header)) {}

  Layer read(std::string_view line, std::size_t number) const {
    const std::vector<std::string> cells = split_csv_line(line);
    if (cells.size() != columns_.size())
      throw Error(fmt::format("{}:{}: has {} cells, its header has {}; give one for each column",
                              file_, number, cells.size(), columns_.size()));
    const auto value = [&](std::string_view column, double unit) {
      return std::llround(unit * number_in(cells, column, number));
    };
    Layer layer;
    layer.name = cells[column_of("op_name")];
    layer.forward = value("forward-compute", 1e3);
    layer.backward = value("backward-compute", 1e3);
    layer.activations = value("activations", 1 << 20);
    layer.parameters = value("weights", 1 << 20);
    layer.sent = value("output_size", 1 << 20);
    return layer;
  }

 private:
  std::size_t column_of(std::string_view name) const {
    const auto found = std::find(columns_.begin(), columns_.end(), name);
    if (found == columns_.end())
      throw Error(fmt::format("{}:1: has no column '{}'; an Aceso profile has it", file_, name));
    return static_cast<std::size_t>(found - columns_.begin());
  }

  double number_in(const std::vector<std::string>& cells, std::string_view column,
                   std::size_t line) const {
    const std::string& text = cells[column_of(column)];
    const auto number = parse_number<double>(text);
    if (number && *number >= 0 && *number <= kMaxNumber) return *number;
    throw Error(
        fmt::format("{}:{}: {} is '{}', which is not a time or size; write a number that is "
                    "not negative",
                    file_, line, column, text));
  }

  const std::string& file_;
  std::vector<std::string> columns_;
};

std::string_view layer_of(const Layer& row) {
  for (const std::string_view prefix : {"enc-", "dec-"})
    if (row.name.starts_with(prefix)) return prefix;
  return "";
}

void add_layer(LayerGraph& graph, Layer layer) {
  if (static_cast<std::size_t>(graph.size()) == kMaxLayers)
    throw Error(fmt::format("{}: has more than {}; repeat fewer", graph.source,
                            counted(kMaxLayers, "layer")));
  graph.inputs.emplace_back();
  if (graph.size() > 0) graph.inputs.back().push_back(graph.size() - 1);
  graph.layers.push_back(std::move(layer));
}

}  // namespace

bool is_aceso_profile(std::string_view text) { return text.starts_with("op_name,"); }

LayerGraph parse_aceso_profile(std::string_view text, const std::string& file,
                               std::int32_t repeats) {
  const RowReader reader(take_line(text), file);
  std::vector<Layer> rows;
  for (std::size_t number = 2; !text.empty(); ++number) {
    const std::string_view line = take_line(text);
    if (line.find_first_not_of(" \r") != line.npos) rows.push_back(reader.read(line, number));
  }
  if (rows.empty()) throw Error(file + ": holds no operator; give the file with a row for each");
  LayerGraph graph;
  graph.source = file;
  for (auto begin = rows.begin(); begin != rows.end();) {
    const std::string_view layer = layer_of(*begin);
    const auto end =
        std::find_if(begin, rows.end(), [&](const Layer& row) { return layer_of(row) != layer; });
    const std::int32_t times = layer.empty() ? 1 : repeats;
    for (std::int32_t time = 0; time < times; ++time)
      for (auto row = begin; row != end; ++row) {
        Layer next = *row;
        if (times > 1) next.name += fmt::format(" {}", time + 1);
        add_layer(graph, std::move(next));
      }
    begin = end;
  }
  return graph;
}

}  // namespace bubblescope::traces
