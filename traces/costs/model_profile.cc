// Parses a profile line by line, then sorts its layers into an order in which they can run.
#include "traces/costs/model_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/costs/aceso_profile.h"
#include "traces/costs/cost_file.h"
#include "traces/files/file.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kSeparator = " -- ";
constexpr std::size_t kMaxLayers = 100'000;

/// The position that an error names.
struct Place {
  const std::string& file;
  std::size_t line;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}:{}: {}", file, line, what));
  }
};

/// Returns the text, or its beginning, for an error.
std::string shown(std::string_view text) {
  constexpr std::size_t kMaxShown = 40;
  return text.size() <= kMaxShown ? fmt::format("'{}'", text)
                                  : fmt::format("'{}...'", text.substr(0, kMaxShown));
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Returns the value after `key`, which includes its "=", up to the next comma.
std::string_view value_of(std::string_view costs, std::string_view key, const Place& place) {
  const std::size_t at = costs.find(key);
  if (at == costs.npos)
    place.refuse(
        fmt::format("{} has no '{}'; write forward_compute_time=, "
                    "backward_compute_time=, activation_size= and parameter_size=",
                    shown(costs), key));
  const std::string_view rest = costs.substr(at + key.size());
  return trim(rest.substr(0, rest.find(',')));
}

template <class Read>
auto read_or_refuse(const Place& place, std::string_view key, std::string_view text, Read read) {
  try {
    return read(text);
  } catch (const Error& error) {
    place.refuse(fmt::format("{} {}", key, error.what()));
  }
}

/// Parses "12.0", or the sum of "[12.0; 4.0]".
Bytes read_sizes(std::string_view text) {
  if (text.empty() || text.front() != '[') return parse_bytes(text);
  if (text.back() != ']') throw Error(shown(text) + " has no ']'");
  Bytes sum = 0;
  for (std::string_view rest = text.substr(1, text.size() - 2); !rest.empty();) {
    const std::size_t end = rest.find(';');
    sum += parse_bytes(trim(rest.substr(0, end)));
    if (sum > (Bytes{1} << 60)) throw Error(shown(text) + " is more than 2^60 bytes");
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  }
  return sum;
}

Layer read_layer(std::string_view line, const Place& place) {
  const std::size_t name_end = line.find(kSeparator);
  const std::size_t costs_at = line.rfind(" -- forward_compute_time=");
  if (costs_at == line.npos || name_end == line.npos || costs_at < name_end)
    place.refuse(shown(line) +
                 " is neither 'NODE -- WHAT -- forward_compute_time=...' nor a tab and 'NODE -- "
                 "NODE'");
  std::string_view costs = line.substr(costs_at + kSeparator.size());
  costs = costs.substr(0, costs.find(kSeparator));
  const auto time = [&](std::string_view key) {
    return read_or_refuse(place, key, value_of(costs, key, place), parse_duration);
  };
  const auto size = [&](std::string_view key) {
    return read_or_refuse(place, key, value_of(costs, key, place), read_sizes);
  };
  Layer layer;
  layer.name = trim(line.substr(0, name_end));
  const std::size_t kind_at = std::min(costs_at, name_end + kSeparator.size());
  layer.kind = trim(line.substr(kind_at, costs_at - kind_at));
  layer.forward = time("forward_compute_time=");
  layer.backward = time("backward_compute_time=");
  layer.activations = size("activation_size=");
  layer.parameters = size("parameter_size=");
  return layer;
}

/// Reads nodes and edges as they appear in the file.
class GraphReader {
 public:
  explicit GraphReader(const std::string& file) : file_(file) {}

  LayerGraph read(std::string_view text) {
    for (std::size_t line = 1; !text.empty(); ++line) {
      const std::size_t end = text.find('\n');
      read_line(text.substr(0, end), {file_, line});
      text = end == text.npos ? std::string_view{} : text.substr(end + 1);
    }
    if (layers_.empty())
      throw Error(file_ +
                  ": holds no layer; a profile is a graph file of PipeDream, a csv of Aceso or a "
                  "cost file");
    const bool chain = edges_ < layers_.size() / 2;
    drop_uncomputed_layers();
    if (chain) link_in_order();
    return in_order();
  }

 private:
  void read_line(std::string_view line, const Place& place) {
    if (trim(line).empty()) return;
    if (line.front() == '\t') return read_edge(trim(line), place);
    Layer layer = read_layer(line, place);
    if (layers_.size() == kMaxLayers)
      place.refuse(fmt::format("is beyond the limit of {}", counted(kMaxLayers, "layer")));
    if (!number_.emplace(layer.name, layers_.size()).second)
      place.refuse(shown(layer.name) + " was there before; names must differ");
    layers_.push_back(std::move(layer));
    dropped_.push_back(false);
    inputs_.emplace_back();
    outputs_.emplace_back();
  }

  void read_edge(std::string_view line, const Place& place) {
    const std::size_t at = line.find(kSeparator);
    if (at == line.npos) place.refuse(shown(line) + " is not an edge; write 'NODE -- NODE'");
    const std::size_t from = number_of(trim(line.substr(0, at)), place);
    const std::size_t to = number_of(trim(line.substr(at + kSeparator.size())), place);
    if (from == to) place.refuse(shown(line) + " leads to itself");
    link(from, to);
    ++edges_;
  }

  std::size_t number_of(std::string_view name, const Place& place) const {
    const auto found = number_.find(std::string(name));
    if (found == number_.end())
      place.refuse(shown(name) + " is not a node above; edges follow their nodes");
    return found->second;
  }

  void link(std::size_t from, std::size_t to) {
    outputs_[from].push_back(to);
    inputs_[to].push_back(from);
  }

  /// Compares the numbers at the end of names, so that "node9" precedes "node10".
  bool comes_first(std::size_t left, std::size_t right) const {
    const std::string& a = layers_[left].name;
    const std::string& b = layers_[right].name;
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }

  void drop_uncomputed_layers() {
    for (std::size_t node = 0; node < layers_.size(); ++node) {
      const bool loads = inputs_[node].empty() && layers_[node].kind.starts_with("Input");
      const bool unused = outputs_[node].empty() && layers_[node].kind.starts_with("__getitem__");
      dropped_[node] = loads || unused;
    }
  }

  void link_in_order() {
    std::vector<std::size_t> nodes;
    for (std::size_t node = 0; node < layers_.size(); ++node) {
      inputs_[node].clear();
      outputs_[node].clear();
      if (!dropped_[node]) nodes.push_back(node);
    }
    std::sort(nodes.begin(), nodes.end(),
              [&](std::size_t a, std::size_t b) { return comes_first(a, b); });
    for (std::size_t at = 1; at < nodes.size(); ++at) link(nodes[at - 1], nodes[at]);
  }

  /// Takes, of the layers that can run next, always the one with the lowest number.
  LayerGraph in_order() {
    const auto comes_last = [&](std::size_t a, std::size_t b) { return comes_first(b, a); };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(comes_last)> ready(
        comes_last);
    std::vector<std::size_t> waits_for(layers_.size(), 0);
    for (std::size_t node = 0; node < layers_.size(); ++node) {
      for (const std::size_t from : inputs_[node]) waits_for[node] += dropped_[from] ? 0 : 1;
      if (!dropped_[node] && waits_for[node] == 0) ready.push(node);
    }
    LayerGraph graph;
    graph.source = file_;
    std::vector<std::int32_t> place(layers_.size(), 0);
    std::size_t left = 0;
    for (const bool dropped : dropped_) left += dropped ? 0 : 1;
    for (; !ready.empty(); --left) {
      const std::size_t node = ready.top();
      ready.pop();
      place[node] = graph.size();
      graph.layers.push_back(layers_[node]);
      std::vector<std::int32_t>& inputs = graph.inputs.emplace_back();
      for (const std::size_t from : inputs_[node])
        if (!dropped_[from]) inputs.push_back(place[from]);
      for (const std::size_t to : outputs_[node])
        if (!dropped_[to] && --waits_for[to] == 0) ready.push(to);
    }
    if (left > 0)
      throw Error(
          fmt::format("{}: the edges among {} form a cycle; a model's edges lead from its inputs "
                      "to its output",
                      file_, counted(static_cast<std::int64_t>(left), "layer")));
    return graph;
  }

  const std::string& file_;
  std::vector<Layer> layers_;
  std::vector<bool> dropped_;
  std::map<std::string, std::size_t> number_;
  std::vector<std::vector<std::size_t>> inputs_;
  std::vector<std::vector<std::size_t>> outputs_;
  std::size_t edges_ = 0;
};

/// The size of the messages after a stage; empty where the table does not give it.
std::optional<Bytes> sent_by(const StageEntry& stage, const CostTable& costs) {
  if (stage.message_bytes || costs.message.bytes == 0) return stage.message_bytes;
  return costs.message.bytes;
}

LayerGraph graph_of(CostTable costs) {
  LayerGraph graph;
  graph.source = costs.file;
  for (const StageEntry& stage : costs.stages) {
    Layer layer;
    layer.name = fmt::format("stage {}", graph.size());
    layer.forward = stage.forward;
    layer.backward = full_backward(stage).value_or(0);
    layer.activations = stage.activation_bytes ? stage.activation_bytes->forward : 0;
    layer.parameters = stage.weight_bytes.value_or(0);
    layer.sent = sent_by(stage, costs);
    graph.inputs.emplace_back();
    if (graph.size() > 0) graph.inputs.back().push_back(graph.size() - 1);
    graph.layers.push_back(std::move(layer));
  }
  graph.costs = std::move(costs);
  return graph;
}

constexpr std::int32_t kMaxSearchedLayers = 4096;

/// Stages hold several versions of their weights and activations, whose sum must stay in 64 bits.
void expect_sizes(const LayerGraph& graph, const std::string& path) {
  constexpr Bytes kMaxSizes = Bytes{1} << 44;  // sixteen times the largest models
  Bytes left = kMaxSizes;
  for (const Layer& layer : graph.layers) {
    if (layer.parameters > left || layer.activations > left - layer.parameters)
      throw Error(fmt::format(
          "{}: its layers have more than 2^44 bytes of parameters and activations up to layer "
          "'{}'; correct their sizes",
          path, layer.name));
    left -= layer.parameters + layer.activations;
  }
}

}  // namespace

LayerGraph parse_model_profile(std::string_view text, const std::string& file,
                               std::int32_t repeats) {
  if (is_aceso_profile(text)) return parse_aceso_profile(text, file, repeats);
  if (repeats != 1)
    throw Error(file + " names every layer; leave `repeat_layers` out, it is for Aceso profiles");
  if (trim(text).starts_with('{')) return graph_of(parse_cost_file(text, file));
  return GraphReader(file).read(text);
}

LayerGraph read_model_profile(const std::string& path, std::int32_t repeats) {
  LayerGraph graph = parse_model_profile(read_file(path), name_input(path), repeats);
  if (graph.size() > kMaxSearchedLayers)
    throw Error(fmt::format(
        "{}: has {}, and cutting takes memory and time for every pair of them: the limit is {}",
        path, counted(graph.size(), "layer"), kMaxSearchedLayers));
  expect_sizes(graph, path);
  return graph;
}

}  // namespace bubblescope::traces
