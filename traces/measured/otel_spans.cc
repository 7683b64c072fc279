// Megatron-LM's OpenTelemetry spans, as the file exporter of a collector writes them: OTLP as json,
// one object per line.
//
//   {"resourceSpans":[{"resource":{"attributes":[{"key":"dl.rank","value":{"intValue":"2"}}]},
//     "scopeSpans":[{"spans":[{"name":"megatron.microbatch.forward",
//       "startTimeUnixNano":"1750000000000000000","endTimeUnixNano":"1750000000003000000",
//       "attributes":[{"key":"megatron.microbatch_id","value":{"intValue":"0"}}]}]}]}]}
//
// A span ends when the host has launched an op, not when the device has run it. So spans show the
// order of ops and the host's time, from which nothing about bubbles follows.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/json/json_node.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/seen_names.h"
#include "traces/measured/time_span.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kForwardSpan = "megatron.microbatch.forward";
constexpr const char* kBackwardSpan = "megatron.microbatch.backward";
constexpr const char* kStepSpan = "megatron.train_step";

using Attributes = std::map<std::string, std::int64_t>;

/// Returns the integer attributes of a resource or a span.
Attributes attributes_of(const JsonNode& owner) {
  Attributes found;
  const auto list = owner.find("attributes");
  if (!list) return found;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const JsonNode entry = (*list)[at];
    const JsonNode value = entry.at("value");
    const auto number = value.find("intValue");
    if (!number) continue;
    const JsonNode key = entry.at("key");
    const auto parsed = number->is_integer() ? std::optional(number->integer(INT64_MIN, INT64_MAX))
                                             : parse_number<std::int64_t>(number->text());
    if (!parsed) number->refuse("must be an integer, as text or as a number");
    found[key.text()] = *parsed;
  }
  return found;
}

std::optional<std::int64_t> find_attribute(const Attributes& attributes,
                                           std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const auto found = attributes.find(key); found != attributes.end()) return found->second;
  return {};
}

struct Span {
  Nanos start = 0;
  Nanos end = 0;
  std::optional<std::int64_t> number;  ///< of the micro-batch, or of the iteration
};

/// The spans of one process.
struct Process {
  Attributes attributes;
  std::vector<Span> forwards, backwards, steps;
};

Nanos time_at(const JsonNode& span, const char* key) {
  const JsonNode node = span.at(key);
  constexpr std::int64_t kMaxTime = std::int64_t{1} << 62;
  if (node.is_integer()) return node.integer(0, kMaxTime);
  const auto time = parse_number<std::int64_t>(node.text());
  if (!time || *time < 0 || *time > kMaxTime) node.refuse("must be nanoseconds since 1970");
  return *time;
}

class SpanReader {
 public:
  explicit SpanReader(const TraceInput& input)
      : path_(input.path), text_(input.text), rules_(input.rules) {}

  ObservedTrace read() && {
    trace_.source = {.name = "otel"};
    while (!text_.empty()) {
      const std::size_t end = object_end();
      if (const std::string_view object = strip(text_.substr(0, end)); !object.empty())
        read_object(object);
      text_.remove_prefix(std::min(text_.size(), end + 1));
    }
    for (const auto& [_, process] : processes_) add(process);
    if (trace_.ops.empty())
      throw NoPipeline(path_ +
                       ": its spans name no forward or backward of a micro-batch; with "
                       "Megatron-LM set MEGATRON_OTEL_SPAN_GROUPS=all, else name them by rules, or "
                       "analyze a profile" +
                       seen_.describe());
    trace_.remarks.faults.emplace_back(
        "spans show when the host launched ops, not when the device ran them: the order of ops is "
        "right, but no bubble, time or cause follows from it; record a profile for these");
    return std::move(trace_);
  }

 private:
  /// Finds the end of the next object: a line holds one object, or the whole file is one object
  /// with line breaks.
  std::size_t object_end() const {
    const std::size_t end = std::min(text_.find('\n'), text_.size());
    const bool is_line = strip(text_.substr(0, end)).ends_with("]}");
    return is_line || strip(text_.substr(0, end)).empty() ? end : text_.size();
  }

  void read_object(std::string_view text) {
    const JsonFile json(text, path_);
    const JsonNode root = json.root();
    const JsonNode resources = root.at("resourceSpans");
    for (std::size_t at = 0; at < resources.size(); ++at) read_resource(resources[at]);
  }

  void read_resource(const JsonNode& node) {
    Attributes attributes;
    if (const auto resource = node.find("resource")) attributes = attributes_of(*resource);
    Process& process = processes_[attributes];
    process.attributes = attributes;
    const JsonNode scopes = node.at("scopeSpans");
    for (std::size_t at = 0; at < scopes.size(); ++at) {
      const JsonNode scope = scopes[at];
      const JsonNode spans = scope.at("spans");
      for (std::size_t span = 0; span < spans.size(); ++span) read_span(process, spans[span]);
    }
  }

  /// The spans that have the meaning of a name, by the rules or as Megatron-LM names them; null for
  /// those that are neither ops nor steps.
  std::vector<Span>* list_of(Process& process, const std::string& name) const {
    const auto ruled = rules_ ? rules_->find(name) : std::nullopt;
    if (ruled && ruled->is_step) return &process.steps;
    if (ruled && !ruled->op) return nullptr;
    if (ruled && ruled->op->op.kind == OpKind::kForward) return &process.forwards;
    if (ruled && ruled->op->op.kind == OpKind::kBackward) return &process.backwards;
    if (ruled) return nullptr;
    if (name == kForwardSpan) return &process.forwards;
    if (name == kBackwardSpan) return &process.backwards;
    return name == kStepSpan ? &process.steps : nullptr;
  }

  void read_span(Process& process, const JsonNode& node) {
    const JsonNode name_node = node.at("name");
    const std::string& name = name_node.text();
    std::vector<Span>* const list = list_of(process, name);
    if (!list) return seen_.add(name);
    Span span{time_at(node, "startTimeUnixNano"), time_at(node, "endTimeUnixNano"), {}};
    if (span.end < span.start) node.refuse("ends before it starts");
    const Attributes attributes = attributes_of(node);
    span.number = find_attribute(attributes, {"megatron.microbatch_id", "dl.microbatch_id",
                                              "megatron.iteration", "dl.iteration"});
    list->push_back(span);
  }

  void add(const Process& process) {
    if (process.forwards.empty() && process.backwards.empty()) return;
    if (find_attribute(process.attributes, {"dl.tensor_parallel.rank"}).value_or(0) > 0) return;
    const auto rank = find_attribute(process.attributes, {"dl.pipeline_parallel.rank"});
    const auto replica = find_attribute(process.attributes, {"dl.data_parallel.rank"});
    Recorder recorder;
    recorder.where = path_;
    if (rank && *rank >= 0 && *rank < kMaxRanks) recorder.rank = static_cast<std::int32_t>(*rank);
    recorder.has_replica = replica.has_value();
    trace_.recorders.push_back(recorder);
    add(process.forwards, OpKind::kForward, process, replica.value_or(0));
    add(process.backwards, OpKind::kBackward, process, replica.value_or(0));
  }

  void add(std::vector<Span> spans, OpKind kind, const Process& process, std::int64_t replica) {
    sort_by_start(spans);
    std::int32_t count = 0;
    for (const Span& span : spans) {
      ObservedOp observed;
      observed.op.kind = kind;
      observed.recorder = static_cast<std::int32_t>(trace_.recorders.size()) - 1;
      observed.replica = static_cast<std::int32_t>(std::clamp<std::int64_t>(replica, 0, 1 << 20));
      observed.chunk = 0;
      observed.start = span.start;
      observed.end = span.end;
      observed.numbered = false;
      observed.op.microbatch = count++;
      const auto step = std::find_if(
          process.steps.begin(), process.steps.end(),
          [&](const Span& at) { return at.start <= span.start && span.start <= at.end; });
      observed.has_step = step != process.steps.end();
      if (observed.has_step) observed.step = step->number.value_or(step - process.steps.begin());
      trace_.ops.push_back(observed);
    }
  }

  std::string path_;
  std::string_view text_;
  const NameRules* rules_ = nullptr;
  SeenNames seen_;
  std::map<Attributes, Process> processes_;
  ObservedTrace trace_;
};

const Registrar<TraceFormat> otel_registrar{[] {
  return TraceFormat{
      "otel",
      {"otlp", "opentelemetry"},
      "Megatron-LM's OpenTelemetry spans (OTLP as json): the order of ops, not their time",
      [](std::string_view text) {
        const std::string_view begin = strip(text.substr(0, 96));
        return begin.starts_with('{') && begin.find("\"resourceSpans\"") != begin.npos;
      },
      [](const TraceInput& input) { return SpanReader(input).read(); }};
}};

}  // namespace

}  // namespace bubblescope::traces
