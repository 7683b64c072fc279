// Writes and reads memory models member by member.
#include "traces/timelines/memory_json.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/named.h"
#include "sim/ir/range.h"

namespace bubblescope::traces {

namespace {

constexpr std::array<Named<Release>, 3> kReleases{
    {{Release::kWeightGrad, "w"}, {Release::kInputGrad, "i"}, {Release::kHalf, "half"}}};

constexpr std::int64_t kMaxUnit = std::int64_t{1} << 60;

void write_delta(JsonWriter& json, const MemoryDelta& delta) {
  json.begin_array().value(delta.forward).value(delta.input_grad).value(delta.weight_grad);
}

template <class Value, class Write>
void write_tensor(JsonWriter& json, const char* key, const CostTensor<Value>& tensor, Write write) {
  if (tensor.empty()) return;
  json.key(key).begin_array();
  for (std::int32_t stage = 0; stage < tensor.stages(); ++stage) {
    json.begin_array();
    for (const Value& value : tensor.of_stage(stage)) write(value);
    json.end_array();
  }
  json.end_array();
}

void expect_size(const JsonNode& node, std::size_t size) {
  if (node.size() != size)
    node.refuse(fmt::format("must have {}, but has {}", counted(size, "entry"), node.size()));
}

MemoryDelta read_delta(const JsonNode& node, std::int64_t limit) {
  const MemoryDelta delta{node[0].integer(0, limit), node[1].integer(-limit, limit),
                          node[2].integer(-limit, limit)};
  if (delta.forward + delta.input_grad + delta.weight_grad != 0)
    node.refuse("must release all that F adds: the sum of F, I and W must be 0");
  return delta;
}

std::vector<Bytes> read_bytes(const JsonNode& memory, const char* key, std::int32_t size) {
  std::vector<Bytes> bytes;
  const auto node = memory.find(key);
  if (!node) return bytes;
  expect_size(*node, static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < node->size(); ++at)
    bytes.push_back((*node)[at].integer(0, kMaxBytes));
  return bytes;
}

template <class Value, class Read>
CostTensor<Value> read_tensor(const JsonNode& memory, const char* key, const Schedule& schedule,
                              Read read) {
  const auto node = memory.find(key);
  if (!node) return {};
  expect_size(*node, static_cast<std::size_t>(schedule.stages()));
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  const std::size_t all = slices * static_cast<std::size_t>(schedule.shape.microbatches);
  CostTensor<Value> tensor(schedule.shape.slices);
  for (std::size_t stage = 0; stage < node->size(); ++stage) {
    const JsonNode row = (*node)[stage];
    if (row.size() != slices && row.size() != all)
      row.refuse(fmt::format("must have {}, or {}, but has {}", counted(slices, "entry"), all,
                             row.size()));
    std::vector<Value> values;
    for (std::size_t at = 0; at < row.size(); ++at) values.push_back(read(row[at]));
    tensor.add_stage(values);
  }
  return tensor;
}

SliceBytes read_slice_bytes(const JsonNode& node) {
  expect_size(node, 4);
  return {read_delta(node, kMaxBytes), node[3].integer(0, kMaxBytes)};
}

MessageSizes read_message_sizes(const JsonNode& node) {
  expect_size(node, 2);
  return {node[0].integer(0, kMaxBytes), node[1].integer(0, kMaxBytes)};
}

void read_unit(const JsonNode& node, MemoryModel& memory) {
  if (const auto release = node.find("release")) {
    const Named<Release>* const found = find_named(kReleases, release->text());
    if (found == nullptr) release->refuse("must be 'w', 'i' or 'half'");
    memory.release = found->choice;
  }
  const JsonNode unit = node.at("unit");
  expect_size(unit, 3);
  memory.unit = read_delta(unit, kMaxUnit);
  memory.unit_parts = node.at("unit_parts").integer32(1, INT32_MAX);
  const JsonNode saved = node.at("saved");
  expect_size(saved, 2);
  memory.saved = {saved[0].integer(0, kWhole), saved[1].integer(0, kWhole)};
}

}  // namespace

bool is_plain(const MemoryModel& memory, const Shape& shape) {
  const MemoryModel plain;
  return memory.release == plain.release && memory.unit.forward == plain.unit.forward &&
         memory.unit.input_grad == plain.unit.input_grad &&
         memory.unit_parts == shape.chunks * shape.slices &&
         memory.saved.full == plain.saved.full && memory.saved.selective == plain.saved.selective &&
         memory.activation_bytes.empty() && memory.weight_bytes.empty() &&
         memory.static_bytes.empty() && !memory.counts_outputs && !memory.counts_gathered;
}

void write_memory_json(JsonWriter& json, const MemoryModel& memory) {
  json.begin_object().member("release", name_of(kReleases, memory.release));
  write_delta(json.key("unit"), memory.unit);
  json.end_array().member("unit_parts", memory.unit_parts);
  json.array("saved", std::array{memory.saved.full, memory.saved.selective});
  if (!memory.activation_bytes.empty()) {
    json.key("activation_bytes").begin_array();
    for (const MemoryDelta& delta : memory.activation_bytes) {
      write_delta(json, delta);
      json.end_array();
    }
    json.end_array();
  }
  const auto write_bytes = [&](const char* key, const std::vector<Bytes>& bytes) {
    if (!bytes.empty()) json.array(key, bytes);
  };
  write_bytes("checkpoint_bytes", memory.checkpoint_bytes);
  write_bytes("weight_bytes", memory.weight_bytes);
  write_bytes("gathered_bytes", memory.gathered_bytes);
  write_bytes("static_bytes", memory.static_bytes);
  write_tensor(json, "microbatch_bytes", memory.by_microbatch, [&](const SliceBytes& bytes) {
    write_delta(json, bytes.activations);
    json.value(bytes.checkpoint).end_array();
  });
  write_tensor(json, "output_bytes", memory.output_bytes, [&](const MessageSizes& sizes) {
    json.begin_array().value(sizes.forward).value(sizes.backward).end_array();
  });
  if (memory.counts_outputs) json.member("counts_outputs", true);
  if (memory.counts_gathered) json.member("counts_gathered", true);
  json.end_object();
}

MemoryModel read_memory_json(const JsonNode& node, const Schedule& schedule) {
  node.expect_keys({"release", "unit", "unit_parts", "saved", "activation_bytes",
                    "checkpoint_bytes", "weight_bytes", "gathered_bytes", "static_bytes",
                    "microbatch_bytes", "output_bytes", "counts_outputs", "counts_gathered"});
  MemoryModel memory;
  read_unit(node, memory);
  const std::int32_t stages = schedule.stages();
  if (const auto activations = node.find("activation_bytes")) {
    expect_size(*activations, static_cast<std::size_t>(stages));
    for (std::size_t stage = 0; stage < activations->size(); ++stage) {
      const JsonNode delta = (*activations)[stage];
      expect_size(delta, 3);
      memory.activation_bytes.push_back(read_delta(delta, kMaxBytes));
    }
  }
  memory.checkpoint_bytes = read_bytes(node, "checkpoint_bytes", stages);
  memory.weight_bytes = read_bytes(node, "weight_bytes", stages);
  memory.gathered_bytes = read_bytes(node, "gathered_bytes", stages);
  memory.static_bytes = read_bytes(node, "static_bytes", schedule.shape.ranks);
  memory.by_microbatch =
      read_tensor<SliceBytes>(node, "microbatch_bytes", schedule, read_slice_bytes);
  memory.output_bytes =
      read_tensor<MessageSizes>(node, "output_bytes", schedule, read_message_sizes);
  const auto read_switch = [&](const char* key) {
    const auto given = node.find(key);
    return given && given->boolean();
  };
  memory.counts_outputs = read_switch("counts_outputs");
  memory.counts_gathered = read_switch("counts_gathered");
  return memory;
}

}  // namespace bubblescope::traces
