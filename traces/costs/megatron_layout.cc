// Parses the grammar of layouts: items, repetitions, groups that do not nest.
#include "traces/costs/megatron_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

#include "sim/ir/error.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxLetters = 1 << 20;
constexpr std::string_view kLetters = "EtmL|";
constexpr std::string_view kNothing = ", \t";

/// Expands all repetitions: "Et*2|" becomes "Ett|".
class Expansion {
 public:
  Expansion(std::string_view text, std::string_view flag) : text_(text), flag_(flag) {}

  std::string run() {
    std::string letters;
    while (next()) append(letters, take_item());
    return letters;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{} {}: column {}: {}", flag_, quote(text_), at_ + 1, what));
  }

  /// Returns the next significant letter; nullopt at the end.
  std::optional<char> next() {
    while (at_ < text_.size() && kNothing.find(text_[at_]) != kNothing.npos) ++at_;
    if (at_ == text_.size()) return {};
    return text_[at_];
  }

  std::string take_item() {
    const std::string item = text_[at_] == '(' ? take_group() : take_letter();
    return repeat(item);
  }

  std::string take_letter() {
    const char letter = text_[at_];
    if (kLetters.find(letter) == kLetters.npos)
      refuse(fmt::format("{} is not a layer; they are E, t, m and L, and | ends a stage",
                         quote(text_.substr(at_, 1))));
    ++at_;
    return {letter};
  }

  std::string take_group() {
    const std::size_t begin = at_++;
    std::string group;
    for (;;) {
      const std::optional<char> letter = next();
      if (!letter) {
        at_ = begin;
        refuse("this ( has no ); add it");
      }
      if (*letter == '(') refuse("a ( inside ( ); Megatron allows one level, write it out");
      if (*letter == ')') break;
      append(group, repeat(take_letter()));
    }
    ++at_;
    return group;
  }

  std::string repeat(const std::string& item) {
    if (next() != '*') return item;
    ++at_;
    next();
    std::int32_t times = 0;
    const auto [last, fault] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), times);
    if (fault != std::errc{} || times < 1) refuse("a number from 1 on must follow *");
    at_ = static_cast<std::size_t>(last - text_.data());
    std::string all;
    for (std::int32_t time = 0; time < times; ++time) append(all, item);
    return all;
  }

  void append(std::string& letters, const std::string& more) const {
    if (letters.size() + more.size() > kMaxLetters)
      refuse(fmt::format("more layers and stages than {}", kMaxLetters));
    letters += more;
  }

  std::string_view text_;
  std::string_view flag_;
  std::size_t at_ = 0;
};

/// Applies Megatron's own rules, from its validate_layer_layout.
void expect_order(std::string_view text, std::string_view flag, const std::string& letters) {
  const auto refuse = [&](const char* what) {
    throw Error(fmt::format("{} {}: {}", flag, quote(text), what));
  };
  std::string layers = letters;
  std::erase(layers, '|');
  const auto count = [&](char letter) { return std::count(layers.begin(), layers.end(), letter); };
  if (layers.empty() || layers.front() != 'E' || count('E') != 1)
    refuse("the first layer must be E, the embedding, and the only one");
  if (layers.back() != 'L' || count('L') != 1)
    refuse("the last layer must be L, the loss, and the only one");
  const std::size_t prediction = layers.find('m');
  if (prediction != layers.npos && layers.find('t', prediction) != layers.npos)
    refuse("a t follows an m; put every m after the last t");
}

std::string repeated(const char* letter, std::int32_t times) {
  if (times < 3) return times == 0 ? "" : times == 1 ? letter : std::string(letter) + letter;
  return fmt::format("{}*{}", letter, times);
}

std::string stage_text(const StageLayers& stage) {
  return repeated("E", stage.embeddings) + repeated("t", stage.transformers) +
         repeated("m", stage.predictions) + repeated("L", stage.losses);
}

}  // namespace

LayerLayout parse_layout(std::string_view text, std::string_view flag) {
  const std::string letters = Expansion(text, flag).run();
  expect_order(text, flag, letters);
  LayerLayout layout(1);
  for (const char letter : letters) {
    if (letter == '|') layout.emplace_back();
    if (letter == 'E') ++layout.back().embeddings;
    if (letter == 't') ++layout.back().transformers;
    if (letter == 'm') ++layout.back().predictions;
    if (letter == 'L') ++layout.back().losses;
  }
  return layout;
}

std::string to_string(const LayerLayout& layout) {
  std::string text;
  for (std::size_t at = 0; at < layout.size();) {
    std::size_t same = at + 1;
    while (same < layout.size() && layout[same] == layout[at]) ++same;
    if (same == layout.size()) --same;  // no | follows the last stage
    const std::string stage = stage_text(layout[at]);
    if (same - at > 1)
      text += fmt::format("({}|)*{}", stage, same - at);
    else
      text += stage + (at + 1 < layout.size() ? "|" : "");
    at = std::max(same, at + 1);
  }
  return text;
}

}  // namespace bubblescope::traces
