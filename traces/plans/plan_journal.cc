// Reads and writes lines of json that carry checksums.
#include "traces/plans/plan_journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "sim/ir/recompute.h"
#include "sim/model/recompute_modules.h"
#include "traces/files/file.h"
#include "traces/files/replacement.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kFormat = "bubblescope-plan-journal/1 ";
constexpr std::size_t kMaxLine = 1 << 20;
constexpr std::size_t kDigits = 16;  ///< of a checksum
constexpr std::int64_t kMaxAmount = 1'000'000'000'000'000'000;

/// Reads a member into `value`, which stays as it is where a text, a fraction or an optional number
/// is null. Throws Error where there is none, and for a value that no plan has.
template <class Value>
void read_member(const JsonNode& object, const char* key, Value& value,
                 std::int64_t min_value = 0) {
  const JsonNode member = object.at(key);
  if (member.is_null() && !std::is_integral_v<Value>) return;
  if constexpr (requires { *value; }) {
    read_member(object, key, value.emplace(), min_value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = member.text();
  } else if constexpr (std::is_same_v<Value, Gradients>) {
    const auto* const known = find_named(kGradientFormats, member.text());
    if (known == nullptr) member.refuse("is no format of gradients");
    value = known->choice;
  } else if constexpr (std::is_same_v<Value, double>) {
    value = member.number().value_or(kMaxAmount);
    if (!(value >= static_cast<double>(min_value) && value < kMaxAmount)) member.refuse("is odd");
  } else {
    value =
        static_cast<Value>(member.integer(min_value, sizeof(Value) == 4 ? 1 << 24 : kMaxAmount));
  }
}

/// Reads a member that is not written where it is usual.
template <class Value>
void read_if_any(const JsonNode& object, const char* key, Value& value,
                 std::int64_t min_value = 0) {
  if (object.find(key)) read_member(object, key, value, min_value);
}

/// Reads what write_plan() writes; the rest of the configuration is known from the sweep.
Plan read_plan(const JsonNode& object) {
  Plan plan;
  read_member(object, "pp", plan.configuration.shape.ranks, 1);
  read_member(object, "vpp", plan.configuration.shape.chunks, 1);
  read_member(object, "microbatches", plan.configuration.shape.microbatches, 1);
  read_if_any(object, "slices", plan.configuration.shape.slices, 1);
  const std::optional<Recompute> recompute = find_recompute(object.at("recompute").text());
  if (!recompute) object.at("recompute").refuse("is none of none|selective|full");
  plan.configuration.recompute = *recompute;
  if (const auto modules = object.find("recompute_modules"))
    plan.configuration.modules = find_modules(modules->text());
  read_member(object, "step_ns", plan.step);
  read_if_any(object, "outside_pipeline_ns", plan.outside_pipeline);
  read_member(object, "lower_bound_ns", plan.lower_bound);
  read_member(object, "bubble_ratio", plan.bubble_ratio, -1);
  if (plan.bubble_ratio > 1) object.at("bubble_ratio").refuse("is odd");
  read_member(object, "mean_busy_ns", plan.mean_busy);
  const JsonNode idle = object.at("mean_idle_by_cause_ns");
  for (std::size_t cause = 0; cause < plan.mean_idle.size(); ++cause)
    read_if_any(idle, std::string(name(static_cast<IdleCause>(cause))).c_str(),
                plan.mean_idle[cause]);
  read_member(object, "peak_activations", plan.peak_activations);
  read_member(object, "peak_units", plan.peak_units);
  read_member(object, "peak_memory_bytes", plan.peak_bytes);
  read_member(object, "mfu", plan.mfu);
  read_member(object, "tokens_per_second", plan.tokens_per_second);
  read_member(object, "gradients", plan.gradients);
  read_member(object, "head_room_bytes", plan.head_room, -kMaxAmount);
  read_member(object, "layout", plan.layout);
  read_if_any(object, "no_interval", plan.no_errors);
  return plan;
}

std::string write_line(const WriteMembers& write_members) {
  std::string text;
  JsonWriter json(text, {.ascii = true});
  json.begin_object();
  write_members(json);
  json.end_object();
  return digest_text(digest(text)) + ' ' + text + '\n';
}

/// Calls `read` with the object of a line. Returns false if the line is corrupted.
bool read_line(std::string_view line, const std::function<void(const JsonNode&)>& read) {
  if (line.size() <= kDigits || line.size() > kMaxLine) return false;
  const std::string_view text = line.substr(kDigits + 1);
  if (line.substr(0, kDigits + 1) != digest_text(digest(text)) + ' ') return false;
  try {
    const JsonFile file(text, "journal");
    read(file.root());
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A result without a plan and a refusal was not tried; see Outcome.
void read_outcome(const JsonNode& line, PlanJournal& journal) {
  Outcome outcome;
  read_member(line, "refusal", outcome.refusal);
  read_member(line, "excess", outcome.excess);
  if (const auto plan = line.find("plan")) {
    outcome.plan = read_plan(*plan);
    read_member(line, "group_size", outcome.plan->configuration.shape.group_size, 1);
  }
  journal.outcomes[static_cast<std::size_t>(line.at("at").integer(0, kMaxAmount))] = outcome;
}

/// Returns "" for a file that does not exist, or that the process that printed the plan removes
/// meanwhile.
std::string read_if_there(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code fault;
  const fs::file_status status = fs::status(path, fault);
  if (status.type() == fs::file_type::not_found) return "";
  if (status.type() == fs::file_type::none)
    throw Error(fmt::format("cannot read {}: {}", path, fault.message()));
  if (!fs::is_regular_file(status))
    throw Error(path + " is not a plain file, which a journal must be; give the name of one");
  try {
    return read_file(path);
  } catch (const Error&) {
    if (fs::status(path, fault).type() == fs::file_type::not_found) return "";
    throw;
  }
}

}  // namespace

std::string file_of(const std::string& word) { return word.substr(word.find('=') + 1); }

std::string compute_fingerprint(const std::vector<std::string>& arguments) {
  std::uint64_t state = digest(BUBBLESCOPE_VERSION);
  for (const std::string& argument : arguments) {
    state = digest(argument, state);
    const std::string file = file_of(argument);
    if (file == "-")
      throw Error("a resumed or sharded plan must read its input again: give a file instead of -");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) state = digest(read_file(file), state);
  }
  return digest_text(state);
}

PlanJournal read_plan_journal(const std::string& path) {
  PlanJournal journal;
  const std::string text = read_if_there(path);
  std::string_view left(text);
  std::size_t end = left.find('\n');
  if (end == left.npos && kFormat.starts_with(left.substr(0, kFormat.size()))) return journal;
  if (!left.starts_with(kFormat))
    throw Error(path + " is not a plan journal; give one, or a file that does not exist");
  const bool is_whole =
      read_line(left.substr(kFormat.size(), end - kFormat.size()), [&](const JsonNode& line) {
        const JsonNode arguments = line.at("arguments");
        for (std::size_t at = 0; at < arguments.size(); ++at)
          journal.arguments.push_back(arguments[at].text());
        journal.fingerprint = line.at("fingerprint").text();
      });
  if (!is_whole)
    throw Error(path + ": the first line is corrupted; remove the file to start again");
  for (; end != left.npos; end = left.find('\n')) {
    read_line(left.substr(0, end), [&](const JsonNode& line) { read_outcome(line, journal); });
    left.remove_prefix(end + 1);
  }
  journal.size = text.size() - left.size();
  return journal;
}

PlanJournalFile::PlanJournalFile(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666)) {
  if (!file_.is_open()) throw Error(fmt::format("cannot write {}: {}", path_, reason(errno)));
  // Some file systems have no locks; there, the user alone keeps plans apart.
  if (::flock(file_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw Error(path_ + " is in use by another plan; give each shard a file of its own, or wait");
}

void PlanJournalFile::begin(const PlanJournal& journal) {
  if (::ftruncate(file_.number(), static_cast<off_t>(journal.size)) != 0)
    throw make_write_error(path_, errno);
  if (journal.size > 0) return;
  append(std::string(kFormat) + write_line([&](JsonWriter& json) {
           json.array("arguments", journal.arguments).member("fingerprint", journal.fingerprint);
         }));
}

void PlanJournalFile::append(std::string_view lines) { write_all(file_.number(), lines, path_); }

std::string write_outcome(std::size_t at, const Outcome& outcome) {
  return write_line([&](JsonWriter& json) {
    json.member("at", at).member("refusal", outcome.refusal).member("excess", outcome.excess);
    if (!outcome.plan) return;
    json.member_or_null("group_size", outcome.plan->configuration.shape.group_size);
    write_plan(json.key("plan"), *outcome.plan, {});
  });
}

}  // namespace bubblescope::traces
