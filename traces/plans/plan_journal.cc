// Reads and writes lines of json that carry checksums.
#include "traces/plans/plan_journal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sim/ir/digest.h"
#include "sim/ir/recompute.h"
#include "traces/files/file.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "bubblescope-plan-journal/1 ";
constexpr std::int64_t kMaxAmount = 1'000'000'000'000'000'000;

/// Reads a member into `value`, which stays as it is where there is none. Throws Error for a value
/// that no plan has.
template <class Value>
void read(const JsonNode& object, const char* key, Value& value, std::int64_t min_value = 0) {
  const std::optional<JsonNode> member = object.find(key);
  if (!member || member->is_null()) return;
  if constexpr (requires { *value; }) {
    read(object, key, value.emplace(), min_value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = member->text();
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = member->boolean();
  } else if constexpr (std::is_same_v<Value, double>) {
    value = member->number().value_or(kMaxAmount);
    if (!(value >= static_cast<double>(min_value) && value < kMaxAmount)) member->refuse("is odd");
  } else {
    value =
        static_cast<Value>(member->integer(min_value, sizeof(Value) == 4 ? 1 << 24 : kMaxAmount));
  }
}

RecomputeModules read_modules(const JsonNode& object) {
  std::string text;
  const std::optional<JsonNode> names = object.find("recompute_modules");
  for (std::size_t at = 0; names && at < names->size(); ++at)
    text += (text.empty() ? "" : ",") + (*names)[at].text();
  return find_modules(text);
}

/// Reads what write_plan() writes of the plan of a configuration.
Plan read_plan(const JsonNode& object, const Configuration& asked) {
  Plan plan;
  Configuration& which = plan.configuration = asked;
  read(object, "slices", which.shape.slices, 1);
  which.recompute = find_recompute(object.at("recompute").text()).value_or(asked.recompute);
  which.modules = read_modules(object);
  read(object, "step_ns", plan.step);
  read(object, "outside_pipeline_ns", plan.outside_pipeline);
  read(object, "lower_bound_ns", plan.lower_bound);
  read(object, "bubble_ratio", plan.bubble_ratio, -1);
  if (plan.bubble_ratio > 1) object.refuse("has an odd bubble_ratio");
  read(object, "mean_busy_ns", plan.mean_busy);
  const JsonNode idle = object.at("mean_idle_by_cause_ns");
  for (std::size_t cause = 0; cause < plan.mean_idle.size(); ++cause)
    read(idle, std::string(name(static_cast<IdleCause>(cause))).c_str(), plan.mean_idle[cause]);
  read(object, "peak_activations", plan.peak_activations);
  read(object, "peak_units", plan.peak_units);
  read(object, "peak_memory_bytes", plan.peak_bytes);
  read(object, "mfu", plan.mfu);
  read(object, "tokens_per_second", plan.tokens_per_second);
  std::string gradients;
  read(object, "gradients", gradients);
  if (const auto* const known = find_named(kGradientFormats, gradients))
    plan.gradients = known->choice;
  read(object, "head_room_bytes", plan.head_room, -kMaxAmount);
  read(object, "layout", plan.layout);
  read(object, "no_interval", plan.no_errors);
  return plan;
}

Outcome read_outcome(const JsonNode& line, const Configuration& asked) {
  Outcome outcome;
  read(line, "refusal", outcome.refusal);
  read(line, "excess", outcome.excess);
  read(line, "over_cap", outcome.over_cap);
  const std::optional<JsonNode> plan = line.find("plan");
  if (!plan) return outcome;
  outcome.plan = read_plan(*plan, asked);
  auto& group_size = outcome.plan->configuration.shape.group_size;
  group_size.reset();
  read(line, "group_size", group_size, 1);
  return outcome;
}

std::string write_line(const WriteMembers& write_members) {
  std::string text;
  JsonWriter json(text, {.ascii = true});
  json.begin_object();
  write_members(json);
  json.end_object();
  return digest_text(digest(text)) + ' ' + text + '\n';
}

/// Calls `rewrite` with the object of a line. Returns whether that writes the same line again:
/// otherwise it is corrupted.
template <class Rewrite>
bool is_whole(std::string_view line, const Rewrite& rewrite) {
  try {
    const JsonFile file(line.substr(std::min(line.find('{'), line.size())), "journal");
    return rewrite(file.root()) == line;
  } catch (const Error&) {
    return false;
  }
}

/// Returns "" for a file that does not exist. The process that prints the plan may just have
/// removed it.
std::string read_if_there(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    throw Error(path + " is not a plain file, which a journal must be; give the name of one");
  try {
    return read_file(path);
  } catch (const Error&) {
    if (fs::status(path, ignored).type() == fs::file_type::not_found) return "";
    throw;
  }
}

/// Returns what may be the name of a file in a word: all of FILE, and the end of NAME=FILE.
std::string file_of(const std::string& word) { return word.substr(word.find('=') + 1); }

}  // namespace

SweepQuestion make_question(const std::vector<std::string>& arguments) {
  std::uint64_t state = digest(BUBBLESCOPE_VERSION);
  for (const std::string& argument : arguments) {
    state = digest(argument, state);
    const std::string file = file_of(argument);
    if (file == "-")
      throw Error("a resumed or sharded plan must read its input again: give a file instead of -");
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) state = digest(read_file(file), state);
  }
  return {arguments, digest_text(state)};
}

std::vector<std::string> read_arguments(const std::string& path) {
  const PlanJournal journal = read_plan_journal(path, {});
  if (journal.size == 0) throw make_empty_error(path);
  const std::vector<std::string>& arguments = journal.question.arguments;
  std::error_code ignored;
  for (const std::string& argument : arguments)
    if (const std::string file = file_of(argument); file == "-" || fs::exists(file, ignored))
      throw Error(
          fmt::format("the shards belong to a plan that reads {}, and files are named only on "
                      "the command line; give its flags again: 'plan {}'",
                      file, fmt::join(arguments, " ")));
  return arguments;
}

PlanJournal read_plan_journal(const std::string& path,
                              const std::vector<Configuration>& configurations) {
  PlanJournal journal;
  const std::string text = read_if_there(path);
  std::string_view left(text);
  std::size_t end = left.find('\n');
  if (end == left.npos && kFormat.starts_with(left.substr(0, kFormat.size()))) return journal;
  if (!left.starts_with(kFormat))
    throw Error(path + " is not a plan journal; give one, or a file that does not exist");
  const auto rewrite_question = [&](const JsonNode& line) {
    const JsonNode arguments = line.at("arguments");
    for (std::size_t at = 0; at < arguments.size(); ++at)
      journal.question.arguments.push_back(arguments[at].text());
    journal.question.fingerprint = line.at("fingerprint").text();
    return write_question(journal.question);
  };
  if (!is_whole(left.substr(0, end + 1), rewrite_question))
    throw Error(path + ": the first line is corrupted; remove the file to start again");
  std::size_t at = 0;
  Outcome outcome;
  const auto rewrite_outcome = [&](const JsonNode& line) {
    at = static_cast<std::size_t>(line.at("at").integer(0, std::ssize(configurations) - 1));
    outcome = read_outcome(line, configurations[at]);
    return write_outcome(at, outcome);
  };
  for (; end != left.npos; end = left.find('\n')) {
    if (is_whole(left.substr(0, end + 1), rewrite_outcome)) journal.outcomes[at] = outcome;
    left.remove_prefix(end + 1);
  }
  journal.size = text.size() - left.size();
  return journal;
}

Error make_empty_error(const std::string& path) {
  return Error(path + " is not there, or holds no results; run its shard again");
}

std::string write_question(const SweepQuestion& question) {
  return std::string(kFormat) + write_line([&](JsonWriter& json) {
           json.array("arguments", question.arguments).member("fingerprint", question.fingerprint);
         });
}

std::string write_outcome(std::size_t at, const Outcome& outcome) {
  return write_line([&](JsonWriter& json) {
    json.member("at", at).member("refusal", outcome.refusal);
    json.member("excess", outcome.excess).member("over_cap", outcome.over_cap);
    if (!outcome.plan) return;
    json.member_or_null("group_size", outcome.plan->configuration.shape.group_size);
    write_plan(json.key("plan"), *outcome.plan, {});
  });
}

}  // namespace bubblescope::traces
