// Reads and writes lines of json that carry checksums.
#include "traces/plans/plan_journal.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kFormat = "bubblescope-plan-journal/1 ";
constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::size_t kDigits = 16;  ///< of a checksum

/// FNV-1a with 64 bits, which detects accidents, not attacks.
std::uint64_t compute_checksum(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325) {
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
  return fmt::format("{:016x} {}\n", compute_checksum(text), text);
}

std::string write_line(const JournalOwner& owner) {
  return write_line([&](JsonWriter& json) {
    json.array("arguments", owner.arguments).member("fingerprint", owner.fingerprint);
    json.member("configurations", owner.configurations).member("shard", owner.shard.index);
    json.member("shards", owner.shard.count);
  });
}

std::string write_line(std::size_t at, const Outcome& outcome) {
  return write_line([&](JsonWriter& json) {
    json.member("at", at).member("refusal", outcome.refusal).member("excess", outcome.excess);
    if (!outcome.plan) return;
    const Shape& shape = outcome.plan->configuration.shape;
    json.member("slices", shape.slices).member_or_null("group_size", shape.group_size);
    write_plan(json.key("plan"), *outcome.plan, {});
  });
}

/// A line's members, as their readers find them. Throws Error for values that no plan has.
struct Members {
  const JsonNode& node;

  bool has(const char* key) const { return node.find(key) && !node.at(key).is_null(); }
  std::int64_t whole(const char* key, std::int64_t max_value = INT64_MAX / 2,
                     std::int64_t min_value = 0) const {
    return node.at(key).integer(min_value, max_value);
  }
  std::int32_t count(const char* key) const {
    return static_cast<std::int32_t>(whole(key, 1 << 24, 1));
  }
  double amount(const char* key, double min_value = 0, double max_value = 1e18) const {
    const std::optional<double> number = node.at(key).number();
    if (!number || !(*number >= min_value && *number <= max_value)) node.refuse(key);
    return *number;
  }
};

/// Reads a plan; the rest of its configuration is known from the sweep.
Plan read_plan(const Members& line, const Members& members) {
  constexpr double kRounding = 1e-6;
  Plan plan;
  Shape& shape = plan.configuration.shape;
  shape.ranks = members.count("pp");
  shape.chunks = members.count("vpp");
  shape.microbatches = members.count("microbatches");
  shape.slices = line.count("slices");
  if (line.has("group_size")) shape.group_size = line.count("group_size");
  plan.step = members.whole("step_ns");
  plan.lower_bound = members.whole("lower_bound_ns", plan.step);
  plan.bubble_ratio = members.amount("bubble_ratio", -kRounding, 1 + kRounding);
  plan.mean_busy = members.whole("mean_busy_ns");
  const JsonNode idle = members.node.at("mean_idle_by_cause_ns");
  for (std::size_t cause = 0; cause < plan.mean_idle.size(); ++cause) {
    const std::string key(name(static_cast<IdleCause>(cause)));
    if (Members{idle}.has(key.c_str())) plan.mean_idle[cause] = Members{idle}.whole(key.c_str());
  }
  plan.peak_activations = members.amount("peak_activations");
  plan.peak_units = members.amount("peak_units");
  if (members.has("peak_memory_bytes")) plan.peak_bytes = members.whole("peak_memory_bytes");
  if (members.has("mfu")) plan.mfu = members.amount("mfu");
  if (members.has("tokens_per_second"))
    plan.tokens_per_second = members.amount("tokens_per_second");
  if (members.has("gradients")) {
    const auto* known = find_named(kGradientFormats, members.node.at("gradients").text());
    if (known == nullptr) members.node.refuse("has gradients that no plan has");
    plan.gradients = known->choice;
  }
  if (members.has("head_room_bytes"))
    plan.head_room = members.whole("head_room_bytes", INT64_MAX / 2, -INT64_MAX / 2);
  if (members.has("layout")) plan.layout = members.node.at("layout").text();
  return plan;
}

/// The result of `read` for a line without its end; nullopt if the line is corrupted.
template <class Read>
auto read_line(std::string_view text, const Read& read)
    -> std::optional<std::invoke_result_t<Read, const JsonNode&>> {
  if (text.size() <= kDigits || text.size() > kMaxLine || text[kDigits] != ' ') return {};
  const std::string_view content = text.substr(kDigits + 1);
  if (text.substr(0, kDigits) != fmt::format("{:016x}", compute_checksum(content))) return {};
  try {
    const JsonFile file(content, "journal");
    return read(file.root());
  } catch (const Error&) {
    return {};
  }
}

JournalOwner read_owner(const JsonNode& line) {
  const Members members{line};
  JournalOwner owner;
  const JsonNode arguments = line.at("arguments");
  for (std::size_t at = 0; at < arguments.size(); ++at)
    owner.arguments.push_back(arguments[at].text());
  owner.fingerprint = line.at("fingerprint").text();
  owner.configurations = static_cast<std::size_t>(members.whole("configurations", 10'000'000));
  owner.shard.count = static_cast<std::size_t>(members.whole("shards", 1'000'000, 1));
  owner.shard.index = static_cast<std::size_t>(
      members.whole("shard", static_cast<std::int64_t>(owner.shard.count) - 1));
  return owner;
}

std::pair<std::size_t, Outcome> read_outcome(const JsonNode& line, const JournalOwner& owner) {
  const Members members{line};
  const auto last = static_cast<std::int64_t>(owner.configurations) - 1;
  const auto at = static_cast<std::size_t>(members.whole("at", last));
  if (!owner.shard.holds(at)) line.refuse("is of another shard");
  Outcome outcome{{}, line.at("refusal").text(), members.amount("excess")};
  if (members.has("plan")) {
    const JsonNode plan = line.at("plan");
    outcome.plan = read_plan(members, {plan});
  }
  return {at, std::move(outcome)};
}

}  // namespace

std::string file_of(const std::string& word) { return word.substr(word.find('=') + 1); }

std::string compute_fingerprint(const std::vector<std::string>& arguments) {
  std::uint64_t hash = compute_checksum(BUBBLESCOPE_VERSION);
  for (const std::string& argument : arguments) {
    hash = compute_checksum(argument + '\n', hash);
    const std::string file = file_of(argument);
    if (file == "-")
      throw Error("a resumed or sharded plan must read its input again: give a file instead of -");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored))
      hash = compute_checksum(read_file(file), hash);
  }
  return fmt::format("{:016x}", hash);
}

std::optional<PlanJournal> read_plan_journal(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  if (!std::filesystem::is_regular_file(path))
    throw Error(path + " is not a plain file, which a journal must be; give the name of one");
  const std::string text = read_file(path);
  const std::size_t end = text.find('\n');
  std::string_view left(text);
  const bool is_cut = end == text.npos && kFormat.starts_with(left.substr(0, kFormat.size()));
  if (!is_cut && !left.starts_with(kFormat))
    throw Error(path + " is not a plan journal; give one, or a file that does not exist");
  if (end == text.npos) return {};
  auto owner = read_line(left.substr(kFormat.size(), end - kFormat.size()), read_owner);
  if (!owner) throw Error(path + ": the first line is corrupted; remove the file to start again");
  PlanJournal journal{*std::move(owner), {}};
  const auto read = [&](const JsonNode& line) { return read_outcome(line, journal.owner); };
  left.remove_prefix(end + 1);
  for (std::size_t next = left.find('\n'); next != left.npos; next = left.find('\n')) {
    if (auto result = read_line(left.substr(0, next), read))
      journal.outcomes[result->first] = std::move(result->second);
    left.remove_prefix(next + 1);
  }
  return journal;
}

std::ofstream write_plan_journal(const std::string& path, const PlanJournal& journal) {
  std::string text = std::string(kFormat) + write_line(journal.owner);
  for (const auto& [at, outcome] : journal.outcomes) text += write_line(at, outcome);
  write_file(path, text);
  std::ofstream file(path, std::ios::binary | std::ios::app);
  if (!file)
    throw Error(fmt::format("cannot add to {}: {}", path, std::generic_category().message(errno)));
  return file;
}

void add_outcome(std::ofstream& file, std::size_t at, const Outcome& outcome) {
  file << write_line(at, outcome);
}

}  // namespace bubblescope::traces
