// Pairs flags with their values, compares what they say, and translates them.
#include "tools/flags/framework_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/ir/error.h"
#include "sim/model/runtime.h"
#include "tools/flags/framework_names.h"
#include "tools/flags/other_meanings.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

/// How a framework's flag is said with one of ours.
enum class Translation : std::uint8_t {
  kSameValue,  ///< ours has the value that theirs has
  kValue,      ///< ours has `value`; theirs takes none
  kAnyOf,      ///< ours has `value`; theirs takes one of `values`, which ours does not tell apart
  kSwitch,     ///< neither takes a value
  kDefault,    ///< ours is left out: what theirs says holds unless ours is given; see `value`
  kGroups,     ///< ours is the number of data and context ranks by theirs
  kOverlap,    ///< ours is left out: the runtime must have what theirs says, unless ours is given
};

/// A flag of a framework that says just what one of a command says.
struct EqualFlag {
  std::string_view name;  ///< as plain_flag_name() writes it
  std::string_view flag;
  Translation translation = Translation::kSameValue;
  /// The value of our flag; for kDefault, the one that would say the same; empty where ours takes
  /// none.
  std::string_view value = {};
  std::string_view values = {};  ///< "e4m3|hybrid"
  /// The value of our flag that may stand beside it and includes what it says.
  std::string_view within = {};
  /// The value of our flag where theirs is given as false; empty: then it says nothing.
  std::string_view off = {};
};

constexpr std::array<EqualFlag, 41> kEqualFlags{{
    {"accumulate-allreduce-grads-in-fp32", "--gradients", Translation::kValue, "fp32"},
    {"accumulate-grad-batches", "--microbatches"},
    // GEMMs in fp8 have 16-bit weights beside them.
    {"bf16", "--precision", Translation::kValue, "bf16", "", "fp8"},
    {"context-parallel-degree", "--cp"},
    {"data-parallel-size", "--dp"},
    {"expert-parallel-degree", "--ep"},
    {"expert-tensor-parallel-degree", "--etp"},
    {"flash-attention", "--save-scores", Translation::kDefault},
    {"fp16", "--precision", Translation::kValue, "fp16", "", "fp8"},
    {"fp8-e4m3", "--precision", Translation::kValue, "fp8"},
    {"fp8-format", "--precision", Translation::kAnyOf, "fp8", "e4m3|hybrid"},
    {"fp8-hybrid", "--precision", Translation::kValue, "fp8"},
    {"grad-reduce-in-bf16", "--gradients", Translation::kValue, "bf16"},
    {"global-batch-size", "--global-batch-size"},
    {"gradient-accumulation-steps", "--microbatches"},
    {"max-seq-len", "--seq-length"},
    {"microbatch-group-size-per-virtual-pipeline-stage", "--microbatch-group-size"},
    {"no-overlap-grad-reduce", "--grad-reduction", Translation::kValue, "serial", "", "",
     "overlap"},
    {"no-overlap-p2p-communication", "--message-exposed", Translation::kValue, "1"},
    {"model-parallel-size", "--tp"},
    {"num-distributed-optimizer-instances", "--shard-size", Translation::kGroups},
    {"overlap-grad-reduce", "--grad-reduction", Translation::kValue, "overlap", "", "", "serial"},
    {"overlap-moe-expert-parallel-comm", "--moe-overlap", Translation::kSwitch},
    {"overlap-param-gather", "--grad-reduction", Translation::kDefault, "overlap"},
    {"per-device-train-batch-size", "--micro-batch-size"},
    {"pipe-parallel-size", "--pp"},
    {"pipeline-parallel-degree", "--pp"},
    {"pipeline-parallel-microbatch-size", "--micro-batch-size"},
    {"seq-len", "--seq-length"},
    {"seqlen", "--seq-length"},
    {"sequence-parallel", "--no-sequence-parallel", Translation::kDefault},
    {"tensor-parallel-degree", "--tp"},
    {"tp-comm-overlap", "--tensor-exposed", Translation::kOverlap},
    {"train-batch-size", "--global-batch-size"},
    {"train-micro-batch-size-per-gpu", "--micro-batch-size"},
    {"use-distributed-optimizer", "--zero", Translation::kValue, "1", "", "", "0"},
    {"use-flash-attn", "--save-scores", Translation::kDefault},
    {"virtual-pipeline-model-parallel-size", "--vpp"},
    {"world-size", "--gpus"},
    {"zero-optimization-stage", "--zero"},
    {"zero-stage", "--zero"},
}};

/// In place of a value, for flags without one: they are given, or may not be.
constexpr const char* kGiven = "given";
constexpr const char* kNotGiven = "not given";

/// A flag with its value, or a word that is neither.
struct GivenWord {
  std::string name;  ///< as it was given, without a value
  std::optional<std::string> value = {};
  bool has_sign = false;              ///< its value follows a '='
  bool is_off = false;                ///< a switch of a framework that is given as false
  std::string group_size = {};        ///< of Translation::kGroups
  std::string own_name = {};          ///< as the command has it
  const CommandFlag* flag = nullptr;  ///< that of the command; null: it has none that says this
  const EqualFlag* theirs = nullptr;  ///< null: it is the command's own name
  bool is_repeated = false;           ///< another flag says this or includes it

  std::string text() const { return value ? name + (has_sign ? "=" : " ") + *value : name; }
};

/// Returns "training" for torchtitan's "--training.seq_len"; empty without a section.
std::string_view section_of(std::string_view name) {
  const std::size_t end = name.rfind('.');
  const std::size_t begin = std::min(name.find_first_not_of('-'), name.size());
  return end == name.npos || end < begin ? std::string_view() : name.substr(begin, end - begin);
}

/// Other sections have keys of the same name that are about something else: "--validation.seq_len".
bool is_of_training(std::string_view section) {
  return section.empty() || section == "training" || section == "parallelism";
}

bool is_one_of(const std::string& value, std::string_view values) {
  const std::vector<std::string> known = split(std::string(values), '|');
  return std::find(known.begin(), known.end(), value) != known.end();
}

/// Whether it says that a switch is on or off, as Transformers and configurations in yaml do.
bool is_truth(const std::string& value) { return is_one_of(to_lower(value), "true|false"); }

bool takes_value(const EqualFlag& theirs) {
  switch (theirs.translation) {
    case Translation::kSameValue:
    case Translation::kAnyOf:
    case Translation::kGroups: return true;
    case Translation::kValue:
    case Translation::kSwitch:
    case Translation::kDefault:
    case Translation::kOverlap: return false;
  }
  return false;
}

/// Whether the framework's flag may stand with this value, or with none.
bool accepts(const EqualFlag& theirs, const std::optional<std::string>& value) {
  if (!takes_value(theirs)) return !value || is_truth(*value);
  return theirs.translation != Translation::kAnyOf || (value && is_one_of(*value, theirs.values));
}

class WordReader {
 public:
  WordReader(const CommandFlags& app, const std::vector<std::string>& words)
      : app_(app), words_(words) {}

  std::vector<GivenWord> read() {
    std::vector<GivenWord> all;
    while (at_ < words_.size()) all.push_back(read_next());
    return all;
  }

 private:
  GivenWord read_next() {
    const std::string& word = words_[at_++];
    if (!word.starts_with('-')) return {word};
    const std::size_t sign = std::min(word.find('='), word.size());
    GivenWord given{word.substr(0, sign)};
    if (sign < word.size()) given.value = word.substr(sign + 1);
    given.has_sign = given.value.has_value();
    find_flag(given);
    const bool wants_value =
        given.flag != nullptr &&
        (given.theirs != nullptr ? takes_value(*given.theirs) : given.flag->takes_value());
    const bool is_switch = given.theirs != nullptr && !takes_value(*given.theirs);
    const bool has_truth = is_switch && has_value() && is_truth(words_[at_]);
    if ((wants_value ? has_value() : has_truth) && !given.has_sign) given.value = words_[at_++];
    given.is_off = is_switch && given.value && to_lower(*given.value) == "false";
    if (given.value && given.flag != nullptr)
      while (at_ < words_.size() && given.flag->is_joined(words_[at_]))
        given.value->append(",").append(words_[at_++]);
    return given;
  }

  bool has_value() const { return at_ < words_.size() && !words_[at_].starts_with("--"); }

  /// Finds the command's flag by its name, with '_' or '-' between words, or by a framework's.
  void find_flag(GivenWord& given) const {
    const auto set = [&](std::string own_name, const EqualFlag* theirs) {
      given.flag = app_.find(own_name);
      given.own_name = std::move(own_name);
      given.theirs = theirs;
    };
    set(given.name, nullptr);
    const std::string_view section = section_of(given.name);
    if (given.flag != nullptr || !given.name.starts_with("--") || !is_of_training(section)) return;
    const std::string plain = plain_flag_name(given.name);
    if (section.empty()) set("--" + plain, nullptr);
    if (given.flag != nullptr) return;
    for (const EqualFlag& theirs : kEqualFlags) {
      if (theirs.name != plain || app_.find(theirs.flag) == nullptr) continue;
      if (theirs.translation == Translation::kGroups && app_.find("--dp") == nullptr) continue;
      const bool is_apart = takes_value(theirs) && !given.has_sign && has_value();
      if (accepts(theirs, is_apart ? std::optional(words_[at_]) : given.value))
        return set(std::string(theirs.flag), &theirs);
    }
  }

  const CommandFlags& app_;
  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
};

/// The value that a flag sets ours to; empty where its value is missing.
std::string stated_value(const GivenWord& given) {
  const std::string value = to_lower(given.value.value_or(""));
  if (given.theirs == nullptr) return given.flag->takes_value() ? value : kGiven;
  switch (given.theirs->translation) {
    case Translation::kSameValue: return value;
    case Translation::kGroups: return given.group_size;
    case Translation::kValue:
    case Translation::kAnyOf:
      return std::string(given.is_off ? given.theirs->off : given.theirs->value);
    case Translation::kSwitch: return given.is_off ? "" : kGiven;
    case Translation::kDefault:
      if (given.theirs->value.empty()) return given.is_off ? kGiven : kNotGiven;
      return given.is_off ? "" : std::string(given.theirs->value);
    case Translation::kOverlap: return "";
  }
  return "";
}

bool is_within(const GivenWord& part, const GivenWord& whole) {
  return part.theirs != nullptr && !part.theirs->within.empty() &&
         stated_value(whole) == part.theirs->within;
}

/// Whether it is said with a flag of ours, and not by leaving that out.
bool is_said(const GivenWord& given) {
  return given.theirs == nullptr || given.theirs->translation != Translation::kDefault ||
         (given.is_off && given.theirs->value.empty());
}

/// Marks the one of two flags that adds nothing to the other. Throws Error where they contradict
/// each other.
void compare_pair(GivenWord& first, GivenWord& second) {
  if (first.flag != second.flag) return;
  if (first.theirs == nullptr && second.theirs == nullptr) return;  // the same flag, twice
  const std::string value = stated_value(first);
  const std::string other = stated_value(second);
  if (value.empty() || other.empty()) return;
  if (is_within(first, second))
    first.is_repeated = true;
  else if (is_within(second, first))
    second.is_repeated = true;
  else if (value == other)
    (is_said(first) && second.theirs != nullptr ? second : first).is_repeated = true;
  else
    throw Error(first.text() + " and " + second.text() +
                " contradict each other; leave one of them out");
}

/// Translates a switch of a framework into our words.
std::vector<std::string> translate_switch(const GivenWord& given) {
  const std::string value = stated_value(given);
  if (value.empty() || !is_said(given)) return {};
  return {value == kGiven ? given.own_name : given.own_name + "=" + value};
}

std::vector<std::string> translate(const GivenWord& given) {
  if (given.flag == nullptr)
    return given.has_sign ? std::vector{given.text()} : std::vector{given.name};
  if (given.theirs != nullptr && !takes_value(*given.theirs)) return translate_switch(given);
  if (given.theirs != nullptr && given.theirs->translation == Translation::kAnyOf)
    return {given.own_name + "=" + std::string(given.theirs->value)};
  if (!given.group_size.empty()) return {given.own_name + "=" + given.group_size};
  if (!given.value) return {given.own_name};
  if (given.has_sign) return {given.own_name + "=" + *given.value};
  return {given.own_name, *given.value};
}

/// The whole number that a flag of the command has; 1 where it is not given or has no number.
std::int64_t number_of(const std::vector<GivenWord>& all, const CommandFlag* flag) {
  std::int64_t number = 1;
  for (const GivenWord& given : all)
    if (flag != nullptr && given.flag == flag && given.value)
      std::from_chars(given.value->data(), given.value->data() + given.value->size(), number);
  return number;
}

/// Divides the data and context ranks by a number of groups.
std::string find_group_size(const GivenWord& groups, const CommandFlags& app,
                            const std::vector<GivenWord>& all) {
  const std::int64_t ranks = number_of(all, app.find("--dp")) * number_of(all, app.find("--cp"));
  const std::string& text = *groups.value;
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (number < 1 || std::to_string(number) != text || ranks % number != 0)
    throw Error(groups.text() + " does not divide --dp times --cp (" + std::to_string(ranks) +
                "); give a divisor of it");
  return std::to_string(ranks / number);
}

/// Refuses a flag by which collectives of tensor ranks are partly hidden, if the runtime hides
/// none.
void expect_tensor_overlap(const GivenWord& given, const std::vector<GivenWord>& all) {
  std::string name(kDefaultRuntime);
  for (const GivenWord& other : all) {
    if (other.own_name == "--tensor-exposed" && other.theirs == nullptr) return;
    if (other.own_name == "--runtime" && other.value) name = *other.value;
  }
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(name);
  if (given.is_off || runtime == nullptr || runtime->assumptions.tensor_exposed < 1) return;
  throw Error(given.text() + ": --runtime " + runtime->name +
              " hides none of the tensor ranks' communication; give --runtime nemo, or "
              "--tensor-exposed with the part that is exposed");
}

/// Completes what depends on other flags.
void resolve_flag(GivenWord& given, const CommandFlags& app, const std::vector<GivenWord>& all) {
  if (given.theirs == nullptr) return;
  if (given.theirs->translation == Translation::kGroups && given.value)
    given.group_size = find_group_size(given, app, all);
  if (given.theirs->translation == Translation::kOverlap) expect_tensor_overlap(given, all);
}

/// Refuses flags of ours that are meant as another program's, as their values show. It names
/// unknown flags as well.
void expect_own_meanings(const CommandFlags& app, const std::vector<GivenWord>& all,
                         bool is_megatron) {
  std::vector<std::string> faults;
  std::vector<std::string> unknown;
  for (const GivenWord& given : all) {
    if (given.flag == nullptr && given.name.starts_with("--")) unknown.push_back(given.name);
    if (given.flag == nullptr || given.theirs != nullptr) continue;
    const std::string fault = find_other_meaning({given.own_name, given.value, is_megatron});
    if (!fault.empty()) faults.push_back(fault);
  }
  if (faults.empty()) return;
  if (!unknown.empty()) faults.push_back(list_unknown_flags(unknown, app.long_names()));
  throw Error(join(faults, "; "));
}

}  // namespace

std::vector<std::string> read_framework_words(const CommandFlags& app,
                                              const std::vector<std::string>& words) {
  std::vector<GivenWord> all = WordReader(app, words).read();
  expect_own_meanings(app, all, has_megatron_words(words));
  std::vector<GivenWord*> flags;  // of the command; there may be thousands of other words
  for (GivenWord& given : all) {
    if (given.flag == nullptr) continue;
    resolve_flag(given, app, all);
    for (GivenWord* const before : flags) compare_pair(*before, given);
    flags.push_back(&given);
  }
  std::vector<std::string> current;
  for (const GivenWord& given : all) {
    if (given.is_repeated) continue;
    for (std::string& word : translate(given)) current.push_back(std::move(word));
  }
  return current;
}

std::vector<NamedFlag> names_as_given(const CommandFlags& app,
                                      const std::vector<std::string>& words) {
  std::vector<NamedFlag> named;
  for (const GivenWord& given : WordReader(app, words).read())
    if (given.flag != nullptr) named.push_back({given.flag, given.name});
  return named;
}

bool has_megatron_words(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 9> kOfMegatron{"decoder-first-pipeline-num-layers",
                                                        "decoder-last-pipeline-num-layers",
                                                        "expert-model-parallel-size",
                                                        "num-layers-per-virtual-pipeline-stage",
                                                        "num-virtual-stages-per-pipeline-rank",
                                                        "pipeline-model-parallel-layout",
                                                        "pipeline-model-parallel-size",
                                                        "tensor-model-parallel-size",
                                                        "use-distributed-optimizer"};
  return std::any_of(kOfMegatron.begin(), kOfMegatron.end(),
                     [&](std::string_view name) { return names_flag(words, name); });
}

bool names_flag(const std::vector<std::string>& words, std::string_view plain_name) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    const std::size_t sign = std::min(word.find('='), word.size());
    if (!word.starts_with("--") || plain_flag_name(word.substr(0, sign)) != plain_name) continue;
    const std::string value = sign < word.size()      ? word.substr(sign + 1)
                              : at + 1 < words.size() ? words[at + 1]
                                                      : "";
    if (to_lower(value) != "false") return true;
  }
  return false;
}

}  // namespace bubblescope::tools
