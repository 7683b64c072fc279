// Lines of json behind checksums.
#include "traces/plan_journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "sim/ir/error.h"
#include "traces/format.h"

namespace bubblescope {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "bubblescope-plan-journal/1 ";
constexpr std::size_t kMostOutcomes = 10'000'000;
constexpr std::size_t kDigits = 16;  ///< of a checksum

/// FNV-1a, 64 bits: no secret to keep, only accidents to notice.
std::uint64_t checksum(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

std::string line_of(const Json& content) {
  const std::string text = content.dump();
  return fmt::format("{:016x} {}\n", checksum(text), text);
}

/// The content of a line without its end; nothing if the checksum is of something else.
std::optional<Json> content_of(std::string_view line) {
  if (line.size() <= kDigits || line[kDigits] != ' ') return {};
  const std::string_view text = line.substr(kDigits + 1);
  if (line.substr(0, kDigits) != fmt::format("{:016x}", checksum(text))) return {};
  Json content = Json::parse(text, nullptr, false);
  if (content.is_discarded()) return {};
  return content;
}

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

template <class Value>
std::optional<Value> optional_of(const Json& json) {
  if (json.is_null()) return {};
  return json.get<Value>();
}

Json json_of(const Plan& plan) {
  const Shape& shape = plan.configuration.shape;
  return {{"pp", shape.ranks},
          {"vpp", shape.chunks},
          {"microbatches", shape.microbatches},
          {"slices", shape.slices},
          {"group_size", json_of(shape.group_size)},
          {"step_ns", plan.step},
          {"lower_bound_ns", plan.lower_bound},
          {"bubble_ratio", plan.bubble_ratio},
          {"busy_ns", plan.mean_busy},
          {"idle_ns", plan.mean_idle},
          {"peak_activations", plan.peak_activations},
          {"peak_units", plan.peak_units},
          {"peak_memory_bytes", json_of(plan.peak_bytes)},
          {"mfu", json_of(plan.mfu)},
          {"tokens_per_second", json_of(plan.tokens_per_second)},
          {"gradients", plan.gradients ? Json(static_cast<int>(*plan.gradients)) : Json()},
          {"head_room_bytes", json_of(plan.head_room)},
          {"layout", plan.layout}};
}

/// The rest of the configuration is that of the sweep.
Plan plan_of(const Json& json) {
  Plan plan;
  Shape& shape = plan.configuration.shape;
  json.at("pp").get_to(shape.ranks);
  json.at("vpp").get_to(shape.chunks);
  json.at("microbatches").get_to(shape.microbatches);
  json.at("slices").get_to(shape.slices);
  shape.group_size = optional_of<std::int32_t>(json.at("group_size"));
  json.at("step_ns").get_to(plan.step);
  json.at("lower_bound_ns").get_to(plan.lower_bound);
  json.at("bubble_ratio").get_to(plan.bubble_ratio);
  json.at("busy_ns").get_to(plan.mean_busy);
  json.at("idle_ns").get_to(plan.mean_idle);
  json.at("peak_activations").get_to(plan.peak_activations);
  json.at("peak_units").get_to(plan.peak_units);
  plan.peak_bytes = optional_of<Bytes>(json.at("peak_memory_bytes"));
  plan.mfu = optional_of<double>(json.at("mfu"));
  plan.tokens_per_second = optional_of<double>(json.at("tokens_per_second"));
  if (const auto gradients = optional_of<int>(json.at("gradients")))
    plan.gradients = static_cast<Gradients>(*gradients);
  plan.head_room = optional_of<Bytes>(json.at("head_room_bytes"));
  json.at("layout").get_to(plan.layout);
  return plan;
}

std::string line_of(std::size_t at, const Outcome& outcome) {
  Json content{{"at", at}};
  if (outcome.plan) content["plan"] = json_of(*outcome.plan);
  if (!outcome.refusal.empty()) content["refusal"] = outcome.refusal;
  if (outcome.excess > 0) content["excess"] = outcome.excess;
  return line_of(content);
}

Json json_of(const JournalOwner& owner) {
  return {{"arguments", owner.arguments},
          {"fingerprint", owner.fingerprint},
          {"configurations", owner.configurations},
          {"shard", owner.shard.index},
          {"shards", owner.shard.count}};
}

JournalOwner owner_of(const Json& json) {
  return {json.at("arguments"),
          json.at("fingerprint"),
          json.at("configurations"),
          {json.at("shard"), json.at("shards")}};
}

void read_outcome(const Json& content, PlanJournal& journal) {
  const auto at = content.at("at").get<std::size_t>();
  if (at >= journal.outcomes.size()) return;
  Outcome outcome;
  if (content.contains("plan")) outcome.plan = plan_of(content["plan"]);
  outcome.refusal = content.value("refusal", "");
  outcome.excess = content.value("excess", 0.0);
  journal.outcomes[at] = std::move(outcome);
}

}  // namespace

std::string fingerprint_of(const std::vector<std::string>& arguments) {
  std::uint64_t hash = checksum(BUBBLESCOPE_VERSION);
  for (const std::string& argument : arguments) {
    hash = checksum(argument + '\n', hash);
    const std::string path = argument.substr(argument.find('=') + 1);  // also of --costs=FILE
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) hash = checksum(read_file(path), hash);
  }
  return fmt::format("{:016x}", hash);
}

std::optional<PlanJournal> read_plan_journal(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  if (!std::filesystem::is_regular_file(path))
    throw Error(path + " is no plain file, which a journal must be; give the name of one");
  const std::string text = read_file(path);
  const std::size_t end = text.find('\n');
  const std::string_view first = std::string_view(text).substr(0, end);
  const bool known = first.substr(0, kFormat.size()) == kFormat.substr(0, first.size());
  if (!known)
    throw Error(path + " is no journal of a plan; give a file that is, or one that is not there");
  if (end == std::string::npos) return {};
  try {
    const std::optional<Json> head = content_of(first.substr(kFormat.size()));
    if (!head) throw Error(path + ": the first line is spoiled; remove the file to begin anew");
    PlanJournal journal{owner_of(*head), {}};
    const JournalOwner& owner = journal.owner;
    if (owner.shard.index >= owner.shard.count || owner.configurations > kMostOutcomes)
      throw Error(path + ": the first line says what no plan does; remove the file to begin anew");
    journal.outcomes.resize(journal.owner.configurations);
    for (std::size_t begin = end + 1; begin < text.size();) {
      const std::size_t line_end = text.find('\n', begin);
      if (line_end == std::string::npos) break;
      const std::string_view line = std::string_view(text).substr(begin, line_end - begin);
      if (const auto content = content_of(line)) read_outcome(*content, journal);
      begin = line_end + 1;
    }
    return journal;
  } catch (const nlohmann::json::exception& error) {
    throw Error(fmt::format("{}: was written by another bubblescope ({}); remove it to begin anew",
                            path, error.what()));
  }
}

PlanJournalWriter::PlanJournalWriter(std::string path, const PlanJournal& journal)
    : path_(std::move(path)), file_(nullptr, &std::fclose) {
  std::string text = std::string(kFormat) + line_of(json_of(journal.owner));
  for (std::size_t at = 0; at < journal.outcomes.size(); ++at)
    if (journal.outcomes[at]) text += line_of(at, *journal.outcomes[at]);
  write_file(path_, text);
  file_.reset(std::fopen(path_.c_str(), "ab"));
  if (!file_)
    throw Error(fmt::format("cannot add to {}: {}", path_, std::generic_category().message(errno)));
}

void PlanJournalWriter::add(std::size_t at, const Outcome& outcome) {
  const std::string line = line_of(at, outcome);
  std::fwrite(line.data(), 1, line.size(), file_.get());
}

void PlanJournalWriter::flush() {
  if (std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0) return;
  throw Error(Fault::kMachine,
              fmt::format("cannot write {}: {}", path_, std::generic_category().message(errno)));
}

}  // namespace bubblescope
