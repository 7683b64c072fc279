// Knows the words that name kinds of ops and what numbers count.
#include "traces/measured/name_guesses.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/ir/number.h"
#include "traces/json/json_writer.h"
#include "traces/measured/code_names.h"

namespace bubblescope::traces {

namespace {

struct Guess {
  const char* word;
  const char* meaning;
};

/// More specific words come first: "bwd_weight" is a weight gradient. They are written in several
/// ways: "bwd_input", "bwd-input", "BwdInput".
constexpr std::array<Guess, 17> kKindWords{{{"wgrad", "W"},
                                            {"weight", "W"},
                                            {"backwarddw", "W"},
                                            {"bwddw", "W"},
                                            {"dgrad", "I"},
                                            {"inputgrad", "I"},
                                            {"gradinput", "I"},
                                            {"backwardinput", "I"},
                                            {"bwdinput", "I"},
                                            {"backwarddx", "I"},
                                            {"bwddx", "I"},
                                            {"recompute", "R"},
                                            {"backward", "B"},
                                            {"bwd", "B"},
                                            {"forward", "F"},
                                            {"fwd", "F"},
                                            {"fw", "F"}}};

constexpr std::array<Guess, 13> kNumberWords{{{"chunk", "chunk"},
                                              {"vpp", "chunk"},
                                              {"stage", "stage"},
                                              {"iter", "step"},
                                              {"step", "step"},
                                              {"rank", "rank"},
                                              {"gpu", "rank"},
                                              {"device", "rank"},
                                              {"slice", "slice"},
                                              {"seq", "slice"},
                                              {"micro", "microbatch"},
                                              {"mbs", "microbatch"},
                                              {"mb", "microbatch"}}};

/// These say what the number right behind them is only if they are words of their own: "s3".
constexpr std::array<Guess, 5> kShortWords{
    {{"s", "stage"}, {"m", "microbatch"}, {"c", "chunk"}, {"r", "rank"}, {"pp", "rank"}}};

/// The meaning of the last of the words that occur in a text; nullptr where none does.
template <std::size_t Count>
const char* guess(const std::array<Guess, Count>& words, const std::string& text) {
  const Guess* found = nullptr;
  std::size_t last = 0;
  for (const Guess& word : words)
    if (const std::size_t at = text.rfind(word.word); at != text.npos && (!found || at > last)) {
      found = &word;
      last = at;
    }
  return found ? found->meaning : nullptr;
}

/// Letters that stand for a kind if they are all of a name before its first number: "b0". An "r" is
/// rather that of a request or a rank.
constexpr std::array<Guess, 4> kKindLetters{{{"f", "F"}, {"b", "B"}, {"i", "I"}, {"w", "W"}}};

/// The kind that a word of the name says; nullptr where none does.
const char* guess_kind_by_word(const std::string& name) {
  constexpr std::size_t kMinJoined = 4;  ///< a shorter word may be of two others: "buf write"
  std::string joined = name;
  std::erase_if(joined, [](char sign) { return sign == '_' || sign == '-' || sign == ' '; });
  for (const Guess& word : kKindWords) {
    const std::string_view text = word.word;
    if ((text.size() < kMinJoined ? name : joined).find(text) != name.npos) return word.meaning;
  }
  return nullptr;
}

/// The meaning of the number behind these letters; nullptr where they do not say it.
const char* guess_number(const std::string& before) {
  if (const char* const meaning = guess(kNumberWords, before)) return meaning;
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz";
  const std::size_t last = before.find_last_of(kLetters);
  if (last == before.npos) return nullptr;
  const std::size_t first = before.find_last_not_of(kLetters, last) + 1;
  const std::string word = before.substr(first, last + 1 - first);
  for (const Guess& one : kShortWords)
    if (word == one.word && (first > 0 || word != "r")) return one.meaning;
  return nullptr;
}

/// Whether the last word before a number says what it counts: its kind of op, or "stage" and the
/// like.
bool has_meaning(const std::string& words) {
  constexpr const char* kWord = "abcdefghijklmnopqrstuvwxyz_-";
  const std::size_t end = words.find_last_of(kWord) + 1;
  if (end == 0) return false;
  const std::string last = words.substr(words.find_last_not_of(kWord, end - 1) + 1, end);
  const bool is_kind_letter = std::any_of(kKindLetters.begin(), kKindLetters.end(),
                                          [&](const Guess& letter) { return last == letter.word; });
  return is_kind_letter || guess_number(last) != nullptr || guess_kind_by_word(last) != nullptr;
}

void append_literal(char sign, std::string& pattern) {
  if (std::string_view(".()[]{}*+?^$|\\").find(sign) != std::string_view::npos) pattern += '\\';
  pattern += sign;
}

/// Whether a name is that of the update at the end of a step, which is no pipeline op.
bool is_update(const std::string& small) {
  constexpr std::array<const char*, 5> kWords{"optim", "adam", "zero_grad", "update", "clip_grad"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return small.find(word) != small.npos; });
}

}  // namespace

const char* guess_kind(const std::string& name) {
  if (const char* const kind = guess_kind_by_word(name)) return kind;
  const std::string first = name.substr(0, name.find_first_of("0123456789 _-:."));
  for (const Guess& letter : kKindLetters)
    if (first == letter.word && first.size() < name.size()) return letter.meaning;
  return nullptr;
}

bool is_communication(const std::string& name) {
  const std::string small = lower(name);
  for (const char* const word :
       {"recv", "send", "gloo:", "nccl:", "c10d::", "all2all", "alltoall", "all_to_all",
        "allreduce", "all_reduce", "reducescatter", "reduce_scatter", "allgather", "all_gather"})
    if (small.find(word) != small.npos) return true;
  return false;
}

bool names_function(std::string_view name) {
  return names_code_location(name) || names_deepspeed_function(name);
}

bool may_be_op(const std::string& name) {
  const std::string small = lower(name);
  if (is_update(small)) return false;
  const auto has = [&](const char* word) { return small.find(word) != small.npos; };
  const bool has_both = (has("forward") || has("fwd")) && (has("backward") || has("bwd"));
  return !has_both && !names_function(name) && !name.starts_with("FSDP::") &&
         !name.starts_with("DistributedDataParallel.") && !is_communication(name);
}

NamePattern make_pattern(std::string_view name) {
  NamePattern pattern;
  std::string before;
  int groups = 0;
  std::vector<int> open;  // without a meaning
  std::optional<int> behind_kind;
  const auto is_taken = [&](const std::string& key) {
    return std::any_of(pattern.numbers.begin(), pattern.numbers.end(),
                       [&](const auto& number) { return number.first == key; });
  };
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at])) {
      append_literal(name[at], pattern.text);
      before += name[at];
      continue;
    }
    const std::string words = lower(before);
    if (const std::size_t end = find_fixed_end(name, at, has_meaning(words)); end > at) {
      for (; at < end; ++at) append_literal(name[at], pattern.text);
      --at;
      continue;
    }
    while (at + 1 < name.size() && is_digit(name[at + 1])) ++at;
    pattern.text += "(\\d+)";
    ++groups;
    const char* const meaning = guess_number(words);
    if (meaning != nullptr && !is_taken(meaning)) pattern.numbers.emplace_back(meaning, groups);
    if (meaning == nullptr) open.push_back(groups);
    if (meaning == nullptr && guess_kind_by_word(words) != nullptr)
      behind_kind = behind_kind.value_or(groups);
    before.clear();
  }
  if (open.empty() || is_taken("microbatch")) return pattern;
  const int microbatch = behind_kind.value_or(open.size() == 1 ? open.front() : NamePattern::kOpen);
  const auto next = std::find_if(pattern.numbers.begin(), pattern.numbers.end(),
                                 [&](const auto& number) { return number.second > microbatch; });
  pattern.numbers.emplace(next, "microbatch", microbatch);
  return pattern;
}

bool is_step_marker(const std::string& name) {
  const NamePattern pattern = make_pattern(name);
  return guess_kind(lower(name)) == nullptr && !names_function(name) &&
         pattern.numbers.size() == 1 && pattern.numbers.front().first == "step";
}

std::string suggest_rule(std::string_view name) {
  const NamePattern pattern = make_pattern(name);
  const char* const kind = guess_kind(lower(name));
  std::string rule;
  JsonWriter json(rule);
  json.begin_object().member("match", pattern.text).member("kind", kind ? kind : "?");
  for (const auto& [key, group] : pattern.numbers)
    json.member(key, group == NamePattern::kOpen ? kOpenGroup : fmt::format("${}", group));
  json.end_object();
  return rule;
}

}  // namespace bubblescope::traces
