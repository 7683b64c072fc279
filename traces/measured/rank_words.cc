// Reads numbers by the words before them.
#include "traces/measured/rank_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "sim/ir/number.h"

namespace bubblescope::traces {

namespace {

constexpr std::array<std::string_view, 3> kPipelines{"pp", "pipeline", "pprank"};
constexpr std::array<std::string_view, 1> kRanks{"rank"};
constexpr std::array<std::string_view, 4> kDevices{"gpu", "cuda", "device", "npu"};
constexpr std::array<std::string_view, 1> kStages{"stage"};
constexpr std::array<std::string_view, 3> kParts{"chunk", "vpp", "stream"};
/// These count something else, also where "rank" follows: "dp rank 1".
constexpr std::array<std::string_view, 24> kOthers{
    "dp",    "tp",      "cp",    "ep",   "data",      "tensor",     "expert", "context",
    "model", "local",   "step",  "iter", "iteration", "epoch",      "run",    "node",
    "host",  "replica", "chunk", "vpp",  "stream",    "microbatch", "mb",     "batch"};

/// A number with the last two words before it, in lower case: "dp rank[3]" is 3 behind "dp" and
/// "rank".
struct WordNumber {
  std::string before;
  std::string word;
  std::optional<std::int32_t> number;
};

/// Moves a whole word before the next one. "Parallel" names nothing by itself: "data parallel
/// rank".
void add_word(std::string& before, std::string& word) {
  if (word != "parallel") before = word;
  word.clear();
}

std::vector<WordNumber> split(std::string_view name) {
  std::vector<WordNumber> found;
  std::string before;
  std::string word;
  bool has_ended = false;
  for (std::size_t at = 0; at < name.size();) {
    if (is_digit(name[at])) {
      const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
      std::int32_t number = 0;
      const auto fault = std::from_chars(name.data() + at, name.data() + end, number).ec;
      found.push_back({before, word, {}});
      if (fault == std::errc{}) found.back().number = number;
      before.clear();
      word.clear();
      at = end;
      continue;
    }
    const auto letter = static_cast<unsigned char>(name[at++]);
    if (std::isalpha(letter) == 0) {
      has_ended = true;
      continue;
    }
    if (has_ended && !word.empty()) add_word(before, word);
    has_ended = false;
    word += static_cast<char>(std::tolower(letter));
  }
  return found;
}

template <std::size_t Count>
bool is_any(const std::string& word, const std::array<std::string_view, Count>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "dprank", where a name has no sign between the two words, counts as "dp".
bool counts_others(const WordNumber& one) {
  constexpr std::string_view kEnd = "rank";
  std::string word = one.word;
  if (word.size() > kEnd.size() && word.ends_with(kEnd)) word.resize(word.size() - kEnd.size());
  return is_any(word, kOthers) || (is_any(one.word, kRanks) && is_any(one.before, kOthers));
}

template <class IsWanted>
std::optional<std::int32_t> find_number(const std::vector<WordNumber>& numbers,
                                        IsWanted is_wanted) {
  for (const WordNumber& one : numbers)
    if (one.number && is_wanted(one) && !counts_others(one)) return one.number;
  return {};
}

}  // namespace

std::optional<NamedNumber> find_rank_number(std::string_view name) {
  const std::vector<WordNumber> numbers = split(name);
  const auto of_pipeline = [](const WordNumber& one) {
    return is_any(one.word, kPipelines) ||
           (is_any(one.word, kRanks) && is_any(one.before, kPipelines));
  };
  const auto of_rank = [](const WordNumber& one) { return is_any(one.word, kRanks); };
  const auto of_device = [](const WordNumber& one) { return is_any(one.word, kDevices); };
  const auto of_stage = [](const WordNumber& one) { return is_any(one.word, kStages); };
  if (const auto number = find_number(numbers, of_pipeline)) return NamedNumber{*number, true};
  if (const auto number = find_number(numbers, of_rank)) return NamedNumber{*number, true};
  if (const auto number = find_number(numbers, of_device)) return NamedNumber{*number, false, true};
  if (const auto number = find_number(numbers, of_stage)) return NamedNumber{*number};
  if (numbers.size() != 1 || !numbers[0].number || counts_others(numbers[0])) return {};
  return NamedNumber{*numbers[0].number};
}

bool names_part_of_rank(std::string_view name) {
  for (const WordNumber& one : split(name))
    if (is_any(one.word, kParts)) return true;
  return false;
}

}  // namespace bubblescope::traces
