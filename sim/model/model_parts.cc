// Divides the time of stages into the parts of their layers.
#include "sim/model/model_parts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/model/layer_recompute.h"
#include "sim/model/layer_timer.h"
#include "sim/model/place_stages.h"

namespace bubblescope::inline sim {

namespace {

PartLane lane_of(std::string_view name) { return find_part_lane(name).value(); }

/// The exposed part of a collective, and the compute that the hidden part slows down.
struct Wait {
  double exposed = 0;
  double slowed = 0;
};

Wait split_wait(double time, double exposed, double sms) {
  const double whole = exposed + (1 - exposed) * sms;
  if (whole == 0) return {};
  return {time * exposed / whole, time * (1 - exposed) * sms / whole};
}

/// The times of one layer's parts, in nanoseconds.
struct LayerPartTimes {
  double context = 0;
  double context_grad = 0;  ///< the same in I
  double attention_reduce = 0;
  double exchange = 0;  ///< of dispatch and of combine
  double network_reduce = 0;
  double recompute = 0;         ///< compute, where all of F is recomputed
  double recompute_tensor = 0;  ///< collectives
  PhaseTimes attention;
  PhaseTimes network;
};

LayerPartTimes estimate_layer_parts(const ModelOnDevices& on, std::int64_t layer) {
  const LayerTimer timer(on);
  const CostAssumptions& assumed = on.assumptions;
  const bool with_experts = has_experts(on.model, layer);
  const bool around_network =
      !with_experts || on.parallel.expert_split() > 1 || on.model.experts->shared > 0;
  const double sms = assumed.collective_sms;
  const double around_one = timer.tensor_collectives(false);
  const Wait tensor = split_wait(around_one, assumed.tensor_exposed, sms);
  const Wait context = split_wait(timer.context_forward(), assumed.context_exposed, sms);
  const Wait context_grad = split_wait(timer.context_backward(), assumed.context_exposed, sms);
  const Wait exchange =
      split_wait(with_experts ? timer.expert_collectives() / 2 : 0, assumed.expert_exposed, sms);
  LayerPartTimes parts;
  parts.attention_reduce = tensor.exposed;
  parts.network_reduce = around_network ? tensor.exposed : 0;
  parts.context = context.exposed;
  parts.context_grad = context_grad.exposed;
  parts.exchange = exchange.exposed;
  const double waits = parts.attention_reduce + parts.network_reduce + 2 * parts.exchange;
  const PhaseTimes whole = estimate_layer_times(on, layer);
  parts.attention = estimate_attention_times(on);
  parts.attention.forward += tensor.slowed + context.slowed;
  parts.attention.input_grad += tensor.slowed + context_grad.slowed;
  double backward = whole.input_grad - waits - parts.context_grad;
  if (on.parallel.recompute != Recompute::kNone) {
    const ModelOnDevices keeping = without_recomputation(on);
    const double again = whole.input_grad - estimate_layer_times(keeping, layer).input_grad;
    if (on.parallel.recompute == Recompute::kFull) {
      const bool stops_early = on.parallel.pytorch && !with_experts;
      parts.recompute_tensor =
          parts.attention_reduce + parts.network_reduce / (stops_early ? 2 : 1);
      parts.recompute = again - parts.recompute_tensor - parts.context - 2 * parts.exchange;
      backward -= again;
    } else {
      parts.attention.input_grad += again;
    }
  }
  parts.network = {whole.forward - waits - parts.context - parts.attention.forward,
                   backward - parts.attention.input_grad,
                   whole.weight_grad - parts.attention.weight_grad};
  return parts;
}

/// [has experts]: the parts of such a layer, as far as the model has any.
using KindsOfParts = std::array<LayerPartTimes, 2>;

KindsOfParts estimate_kinds(const ModelOnDevices& on) {
  KindsOfParts kinds;
  bool known[2] = {};
  for (std::int64_t layer = 0; layer < on.model.layers; ++layer) {
    const bool experts = has_experts(on.model, layer);
    if (!std::exchange(known[experts], true)) kinds[experts] = estimate_layer_parts(on, layer);
  }
  return kinds;
}

/// A stage's device, and the same for those layers that full recomputation leaves out.
class StageDevice {
 public:
  StageDevice(const ModelOnDevices& here, std::int64_t first, std::int64_t end)
      : here_(here), first_(first), end_(end), kept_(end), kinds_(estimate_kinds(here)) {
    if (!here.parallel.keeps_layers()) return;
    kept_ = first + here.parallel.recomputed.covered(end - first);
    keeping_ = without_recomputation(here);
    kept_kinds_ = estimate_kinds(keeping_);
  }

  const ModelOnDevices& here() const { return here_; }
  /// The parts of its layers. It must outlive them.
  std::vector<const LayerPartTimes*> parts() const {
    std::vector<const LayerPartTimes*> layers;
    for (std::int64_t layer = first_; layer < end_; ++layer)
      layers.push_back(&(layer < kept_ ? kinds_ : kept_kinds_)[has_experts(here_.model, layer)]);
    return layers;
  }
  PhaseTimes times() const {
    PhaseTimes sum;
    for (std::int64_t layer = first_; layer < end_; ++layer)
      sum += estimate_layer_times(layer < kept_ ? here_ : keeping_, layer);
    return sum;
  }

 private:
  ModelOnDevices here_;
  ModelOnDevices keeping_;
  std::int64_t first_;
  std::int64_t end_;
  std::int64_t kept_;  ///< the first of the layers that are left out
  KindsOfParts kinds_;
  KindsOfParts kept_kinds_;
};

/// The work of a stage beside its layers, in nanoseconds.
struct BesideLayers {
  PhaseTimes embedding;
  PhaseTimes head;  ///< with the multi-token predictions
  PhaseTimes rest;
  PhaseTimes sharding;  ///< weights gathered for F and I, gradients reduced after W
  Nanos sent_activation = 0;
  Nanos sent_gradient = 0;
};

/// The parts of an op while they are collected, over its layers in the order in which it runs them.
class OpDraft {
 public:
  explicit OpDraft(std::vector<const LayerPartTimes*> layers) : layers_(std::move(layers)) {}

  /// Adds a part of every layer.
  template <class Time>
  void add(std::string_view name, std::string_view lane, const Time& time) {
    DraftPart& part = parts_.emplace_back(name, lane_of(lane), std::vector<double>{});
    for (const LayerPartTimes* layer : layers_)
      part.times.push_back(layer == nullptr ? 0 : std::max(0.0, time(*layer)));
  }

  void add_before(std::string_view name, std::string_view lane, double time) {
    add(name, lane, [](const LayerPartTimes&) { return 0.0; });
    parts_.back().times.front() = std::max(0.0, time);
  }

  void add_behind(std::string_view name, std::string_view lane, double time) {
    add(name, lane, [](const LayerPartTimes&) { return 0.0; });
    parts_.back().times.back() = std::max(0.0, time);
  }

  /// One slice's parts, which take `whole` together: every part is rounded where it ends.
  OpParts round(std::int32_t slices, Nanos whole) const {
    OpParts op;
    op.layers = static_cast<std::int32_t>(layers_.size());
    for (const DraftPart& part : parts_)
      op.parts.push_back({std::string(part.name), part.lane, std::vector<Nanos>(layers_.size())});
    double end = 0;
    Nanos rounded = 0;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer)
      for (std::size_t at = 0; at < parts_.size(); ++at) {
        end += parts_[at].times[layer] / slices;
        const Nanos next = round_nanos(end, "the parts of a stage");
        op.parts[at].times[layer] = next - rounded;
        rounded = next;
      }
    find_longest_compute(op) += whole - rounded;
    std::erase_if(op.parts, [](const OpPart& part) {
      return std::all_of(part.times.begin(), part.times.end(),
                         [](Nanos time) { return time == 0; });
    });
    if (op.parts.empty()) op.parts.push_back({"rest", kComputeLane, {0}});
    connect(op);
    return op;
  }

 private:
  struct DraftPart {
    std::string_view name;
    PartLane lane = kComputeLane;
    std::vector<double> times;  ///< [layer]

    DraftPart(std::string_view its_name, PartLane its_lane, std::vector<double> its_times)
        : name(its_name), lane(its_lane), times(std::move(its_times)) {}
  };

  /// Where a nanosecond more or less matters least.
  static Nanos& find_longest_compute(OpParts& op) {
    Nanos* longest = nullptr;
    for (OpPart& part : op.parts)
      if (part.lane == kComputeLane)
        for (Nanos& time : part.times)
          if (longest == nullptr || time > *longest) longest = &time;
    return *longest;
  }

  /// Each part waits for the one before it that is not a weight gradient.
  static void connect(OpParts& op) {
    std::optional<std::size_t> before;
    std::optional<std::size_t> first;
    for (std::size_t at = 0; at < op.parts.size(); ++at) {
      OpPart& part = op.parts[at];
      if (before) part.after = {*before};
      if (part.name.ends_with("_w")) continue;
      if (!first) first = at;
      before = at;
    }
    if (first) op.parts[*first].after_previous_layer = {*before};
  }

  std::vector<const LayerPartTimes*> layers_;
  std::vector<DraftPart> parts_;
};

OpDraft draft_forward(const std::vector<const LayerPartTimes*>& layers,
                      const BesideLayers& beside) {
  using Layer = const LayerPartTimes&;
  OpDraft op(layers);
  op.add_before("gather", "data", beside.sharding.forward);
  op.add_before("embedding", "compute", beside.embedding.forward);
  op.add("context", "context", [](Layer layer) { return layer.context; });
  op.add("attn", "compute", [](Layer layer) { return layer.attention.forward; });
  op.add("attn_reduce", "tensor", [](Layer layer) { return layer.attention_reduce; });
  op.add("dispatch", "expert", [](Layer layer) { return layer.exchange; });
  op.add("mlp", "compute", [](Layer layer) { return layer.network.forward; });
  op.add("combine", "expert", [](Layer layer) { return layer.exchange; });
  op.add("mlp_reduce", "tensor", [](Layer layer) { return layer.network_reduce; });
  op.add_behind("head", "compute", beside.head.forward);
  op.add_behind("rest", "compute", beside.rest.forward);
  return op;
}

void draft_recompute(OpDraft& op) {
  using Layer = const LayerPartTimes&;
  const auto if_any = [](Layer layer, double time) { return layer.recompute > 0 ? time : 0; };
  op.add("recompute", "compute", [](Layer layer) { return layer.recompute; });
  op.add("recompute_tensor", "tensor", [](Layer layer) { return layer.recompute_tensor; });
  op.add("recompute_context", "context", [&](Layer layer) { return if_any(layer, layer.context); });
  op.add("recompute_expert", "expert",
         [&](Layer layer) { return if_any(layer, 2 * layer.exchange); });
}

/// A full backward, or the input gradient alone, whose layers run from the last to the first.
OpDraft draft_backward(std::vector<const LayerPartTimes*> layers, const BesideLayers& beside,
                       bool with_weights) {
  using Layer = const LayerPartTimes&;
  const double weights = with_weights ? 1 : 0;
  std::reverse(layers.begin(), layers.end());
  OpDraft op(std::move(layers));
  op.add_before("gather", "data", beside.sharding.input_grad);
  op.add_before("head", "compute", beside.head.input_grad + weights * beside.head.weight_grad);
  draft_recompute(op);
  op.add("combine", "expert", [](Layer layer) { return layer.exchange; });
  op.add("mlp", "compute", [](Layer layer) { return layer.network.input_grad; });
  op.add("mlp_w", "compute", [&](Layer layer) { return weights * layer.network.weight_grad; });
  op.add("dispatch", "expert", [](Layer layer) { return layer.exchange; });
  op.add("mlp_reduce", "tensor", [](Layer layer) { return layer.network_reduce; });
  op.add("attn", "compute", [](Layer layer) { return layer.attention.input_grad; });
  op.add("attn_w", "compute", [&](Layer layer) { return weights * layer.attention.weight_grad; });
  op.add("context", "context", [](Layer layer) { return layer.context_grad; });
  op.add("attn_reduce", "tensor", [](Layer layer) { return layer.attention_reduce; });
  op.add_behind("embedding", "compute",
                beside.embedding.input_grad + weights * beside.embedding.weight_grad);
  op.add_behind("rest", "compute", beside.rest.input_grad + weights * beside.rest.weight_grad);
  op.add_behind("reduce", "data", weights * beside.sharding.weight_grad);
  return op;
}

PhaseTimes difference(const PhaseTimes& left, const PhaseTimes& right) {
  return {left.forward - right.forward, left.input_grad - right.input_grad,
          left.weight_grad - right.weight_grad};
}

/// Makes the parts of one stage after another.
class PartsOfStages {
 public:
  PartsOfStages(const ModelOnDevices& on, const Schedule& schedule, const ModelStep& step)
      : on_(on), schedule_(schedule), step_(step), loads_(place_stages(on, schedule).loads) {}

  StageParts make(std::int32_t stage) const {
    const std::size_t at = in_pipeline(stage);
    if (at + 1 >= step_.first_layer.size()) return {};  // a shard of the output layer
    const auto rank = schedule_.rank_of_stage[static_cast<std::size_t>(stage)];
    const StageDevice device(on_.rank_gpus.empty() ? on_ : on_device_of(on_, rank),
                             step_.first_layer[at], step_.first_layer[at + 1]);
    std::vector<const LayerPartTimes*> layers = device.parts();
    const BesideLayers beside = find_beside(device, stage);
    if (layers.empty()) layers.push_back(nullptr);
    const std::int32_t slices = schedule_.shape.slices;
    const StageCost& cost = step_.costs.stages[static_cast<std::size_t>(stage * slices)];
    const StageLoad& load = loads_[at];
    const auto sent = [&](Nanos message) { return static_cast<double>(message) * slices; };
    StageParts parts;
    parts.pair_order = on_.parts->pair_order;
    const auto set = [&](OpKind kind, OpDraft draft, Nanos message, Nanos whole, double host) {
      draft.add_behind("send", "message", sent(message));
      OpParts& op = parts.of_kind[static_cast<std::size_t>(kind)] = draft.round(slices, whole);
      op.host = round_nanos(std::max(0.0, host) / slices, "the host's time of a stage");
    };
    set(OpKind::kForward, draft_forward(layers, beside), beside.sent_activation, cost.forward,
        load.host.forward);
    set(OpKind::kInputGrad, draft_backward(layers, beside, false), beside.sent_gradient,
        cost.input_grad, load.host.input_grad - load.times.weight_grad);
    set(OpKind::kBackward, draft_backward(layers, beside, true), beside.sent_gradient,
        cost.backward, load.host.input_grad);
    return parts;
  }

 private:
  std::size_t in_pipeline(std::int32_t stage) const {
    return static_cast<std::size_t>(stage % schedule_.stages_per_pipeline());
  }

  BesideLayers find_beside(const StageDevice& device, std::int32_t stage) const {
    const ModelOnDevices& here = device.here();
    const std::size_t at = in_pipeline(stage);
    const std::int32_t slices = schedule_.shape.slices;
    BesideLayers beside;
    if (at == 0) beside.embedding = estimate_embedding_times(here);
    if (at + 2 == step_.first_layer.size()) {
      if (schedule_.side_stages == 0) beside.head = estimate_head_times(here);
      if (here.model.predictions > 0) beside.head += estimate_prediction_times(here);
    }
    const PhaseTimes known = beside.embedding + beside.head + device.times();
    const StageLoad& load = loads_[at];
    beside.rest = difference(load.times, known);
    const StageSharing sharing =
        find_sharing(schedule_, schedule_.replicas(stage) * schedule_.pipelines);
    const PhaseTimes sharded = with_sharding(load.times, here, load.parameters, sharing);
    beside.sharding = difference(sharded, load.times);
    const StageCost& cost = step_.costs.stages[static_cast<std::size_t>(stage * slices)];
    const auto rounded = [&](double time) {
      return round_nanos(time / slices, "the parts of a stage");
    };
    beside.sent_activation = cost.forward - rounded(sharded.forward);
    beside.sent_gradient = cost.input_grad - rounded(sharded.input_grad);
    return beside;
  }

  const ModelOnDevices& on_;
  const Schedule& schedule_;
  const ModelStep& step_;
  std::vector<StageLoad> loads_;
};

}  // namespace

PartTable make_model_parts(const ModelOnDevices& on, const Schedule& schedule,
                           const ModelStep& step) {
  PartTable table;
  table.per_slice = table.series_alone = true;
  table.order_field = "`parts`";
  const double left = 1 - on.assumptions.collective_sms;
  const double slowdown =
      left * LaneContention::kMaxSlowdown > 1 ? 1 / left : LaneContention::kMaxSlowdown;
  for (const char* lane : {"tensor", "expert", "context", "data"})
    table.contention.slowdown[kComputeLane][lane_of(lane)] = slowdown;
  const PartsOfStages parts(on, schedule, step);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    table.stages.push_back(parts.make(stage));
  return table;
}

PartsOfModel parse_model_parts(const std::string& text) {
  if (text == "series") return {};
  const std::size_t separator = text.find_first_of(", ");
  if (separator == std::string::npos) return {find_pair_order(text, "series, ")};
  std::string words = text;
  std::replace(words.begin(), words.end(), ',', ' ');
  std::istringstream stream{words};
  return {parse_model_order({std::istream_iterator<std::string>(stream), {}})};
}

}  // namespace bubblescope::inline sim
