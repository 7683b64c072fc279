// Reads and writes lines of json that carry checksums.
#include "traces/plans/plan_journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "bubblescope-plan-journal/1 ";
constexpr std::size_t kMaxOutcomes = 10'000'000;
constexpr std::size_t kMaxShards = 1'000'000;
constexpr std::size_t kMaxLine = 1 << 20;
constexpr double kRounding = 1e-6;
constexpr std::size_t kDigits = 16;  ///< of a checksum

/// FNV-1a with 64 bits, which detects accidents, not attacks.
std::uint64_t checksum(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) {
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

/// A line with one object.
std::string write_line(const WriteMembers& write_members) {
  std::string text;
  JsonWriter json(text, {.ascii = true});
  json.begin_object();
  write_members(json);
  json.end_object();
  return fmt::format("{:016x} {}\n", checksum(text), text);
}

/// The content of a line without its end; nullopt where the checksum does not match.
std::optional<Json> content_of(std::string_view line) {
  if (line.size() <= kDigits || line.size() > kMaxLine || line[kDigits] != ' ') return {};
  const std::string_view text = line.substr(kDigits + 1);
  if (line.substr(0, kDigits) != fmt::format("{:016x}", checksum(text))) return {};
  Json content = Json::parse(text, nullptr, false);
  if (content.is_discarded()) return {};
  return content;
}

/// Thrown for values that a plan cannot have: the line is corrupted.
class CorruptLine {};

std::int64_t whole(const Json& json, std::int64_t min_value, std::int64_t max_value) {
  if (!json.is_number_integer()) throw CorruptLine();
  const bool is_huge =
      json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  const auto number = is_huge ? INT64_MAX : json.get<std::int64_t>();
  if (is_huge || number < min_value || number > max_value) throw CorruptLine();
  return number;
}

std::int32_t count(const Json& json) { return static_cast<std::int32_t>(whole(json, 1, 1 << 24)); }

Nanos time(const Json& json) { return whole(json, 0, INT64_MAX / 2); }

double amount(const Json& json, double min_value = 0, double max_value = 1e18) {
  const auto number = json.get<double>();
  if (!(number >= min_value && number <= max_value)) throw CorruptLine();
  return number;
}

void write_plan(JsonWriter& json, const Plan& plan) {
  const Shape& shape = plan.configuration.shape;
  json.begin_object().member("pp", shape.ranks).member("vpp", shape.chunks);
  json.member("microbatches", shape.microbatches).member("slices", shape.slices);
  json.member_or_null("group_size", shape.group_size).member("step_ns", plan.step);
  json.member("lower_bound_ns", plan.lower_bound).member("bubble_ratio", plan.bubble_ratio);
  json.member("busy_ns", plan.mean_busy).array("idle_ns", plan.mean_idle);
  json.member("peak_activations", plan.peak_activations).member("peak_units", plan.peak_units);
  json.member_or_null("peak_memory_bytes", plan.peak_bytes).member_or_null("mfu", plan.mfu);
  json.member_or_null("tokens_per_second", plan.tokens_per_second).key("gradients");
  plan.gradients ? json.value(static_cast<int>(*plan.gradients)) : json.null();
  json.member_or_null("head_room_bytes", plan.head_room).member("layout", plan.layout);
  json.end_object();
}

/// Reads a plan; the rest of its configuration is known from the sweep.
Plan plan_of(const Json& json) {
  Plan plan;
  Shape& shape = plan.configuration.shape;
  shape.ranks = count(json.at("pp"));
  shape.chunks = count(json.at("vpp"));
  shape.microbatches = count(json.at("microbatches"));
  shape.slices = count(json.at("slices"));
  if (!json.at("group_size").is_null()) shape.group_size = count(json.at("group_size"));
  plan.step = time(json.at("step_ns"));
  plan.lower_bound = whole(json.at("lower_bound_ns"), 0, plan.step);
  plan.bubble_ratio = amount(json.at("bubble_ratio"), -kRounding, 1 + kRounding);
  plan.mean_busy = time(json.at("busy_ns"));
  const Json& idle = json.at("idle_ns");
  if (!idle.is_array() || idle.size() != plan.mean_idle.size()) throw CorruptLine();
  for (std::size_t cause = 0; cause < idle.size(); ++cause)
    plan.mean_idle[cause] = time(idle[cause]);
  plan.peak_activations = amount(json.at("peak_activations"));
  plan.peak_units = amount(json.at("peak_units"));
  if (!json.at("peak_memory_bytes").is_null()) plan.peak_bytes = time(json.at("peak_memory_bytes"));
  if (!json.at("mfu").is_null()) plan.mfu = amount(json.at("mfu"));
  if (!json.at("tokens_per_second").is_null())
    plan.tokens_per_second = amount(json.at("tokens_per_second"));
  if (!json.at("gradients").is_null())
    plan.gradients = static_cast<Gradients>(
        whole(json.at("gradients"), 0, static_cast<std::int64_t>(kGradientFormats.size()) - 1));
  if (!json.at("head_room_bytes").is_null())
    plan.head_room = whole(json.at("head_room_bytes"), -INT64_MAX / 2, INT64_MAX / 2);
  json.at("layout").get_to(plan.layout);
  return plan;
}

std::string line_of(std::size_t at, const Outcome& outcome) {
  return write_line([&](JsonWriter& json) {
    json.member("at", at);
    if (outcome.plan) write_plan(json.key("plan"), *outcome.plan);
    if (!outcome.refusal.empty()) json.member("refusal", outcome.refusal);
    if (outcome.excess > 0) json.member("excess", outcome.excess);
  });
}

std::string line_of(const JournalOwner& owner) {
  return write_line([&](JsonWriter& json) {
    json.array("arguments", owner.arguments).member("fingerprint", owner.fingerprint);
    json.member("configurations", owner.configurations).member("shard", owner.shard.index);
    json.member("shards", owner.shard.count);
  });
}

JournalOwner owner_of(const Json& json) {
  const auto number = [&json](const char* key, std::size_t max_value) {
    return static_cast<std::size_t>(whole(json.at(key), 0, static_cast<std::int64_t>(max_value)));
  };
  JournalOwner owner{json.at("arguments"),
                     json.at("fingerprint"),
                     number("configurations", kMaxOutcomes),
                     {number("shard", kMaxShards), number("shards", kMaxShards)}};
  if (owner.shard.index >= owner.shard.count) throw CorruptLine();
  return owner;
}

void read_outcome(const Json& content, PlanJournal& journal) {
  const auto max_value = static_cast<std::int64_t>(journal.owner.configurations) - 1;
  const auto at = static_cast<std::size_t>(whole(content.at("at"), 0, max_value));
  Outcome outcome;
  if (content.contains("plan")) outcome.plan = plan_of(content["plan"]);
  outcome.refusal = content.value("refusal", "");
  outcome.excess = content.contains("excess") ? amount(content["excess"]) : 0;
  if (!outcome.was_tried() && content.size() > 1) throw CorruptLine();
  journal.outcomes[at] = std::move(outcome);
}

/// Adds a line to the journal; a corrupted line is left out.
void read_line(std::string_view line, PlanJournal& journal) {
  const std::optional<Json> content = content_of(line);
  if (!content) return;
  try {
    read_outcome(*content, journal);
  } catch (const CorruptLine&) {
    return;
  }
}

std::optional<JournalOwner> read_owner(std::string_view first) {
  const std::optional<Json> head = content_of(first);
  if (!head) return {};
  try {
    return owner_of(*head);
  } catch (const CorruptLine&) {
    return {};
  }
}

/// Reads everything after the first line; incomplete lines are ignored.
PlanJournal read_lines(JournalOwner owner, std::string_view text) {
  PlanJournal journal{std::move(owner), {}};
  for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
    read_line(text.substr(0, end), journal);
    text.remove_prefix(end + 1);
  }
  return journal;
}

}  // namespace

std::string compute_fingerprint(const std::vector<std::string>& arguments) {
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
    throw Error(path + " is not a plain file, which a journal must be; give the name of one");
  const std::string text = read_file(path);
  const std::size_t end = text.find('\n');
  const std::string_view first = std::string_view(text).substr(0, end);
  const std::string_view begin = first.substr(0, kFormat.size());
  const bool is_cut = end == text.npos && kFormat.starts_with(begin);
  if (!is_cut && begin != kFormat)
    throw Error(path + " is not a plan journal; give one, or a file that does not exist");
  if (end == text.npos) return {};
  try {
    std::optional<JournalOwner> owner = read_owner(first.substr(kFormat.size()));
    if (!owner) throw Error(path + ": the first line is corrupted; remove the file to start again");
    return read_lines(*std::move(owner), std::string_view(text).substr(end + 1));
  } catch (const nlohmann::json::exception&) {
    throw Error(path + ": was written by another bubblescope; remove it to start again");
  }
}

PlanJournalWriter::PlanJournalWriter(std::string path, const PlanJournal& journal)
    : path_(std::move(path)), file_(nullptr, &std::fclose) {
  std::string text = std::string(kFormat) + line_of(journal.owner);
  for (const auto& [at, outcome] : journal.outcomes) text += line_of(at, outcome);
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

}  // namespace bubblescope::traces
