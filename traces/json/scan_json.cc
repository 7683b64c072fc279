// A recursive descent over the bytes of a text, eight at a time within strings.
#include "traces/json/scan_json.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "sim/ir/number.h"

namespace bubblescope::traces {

namespace {

constexpr int kMaxNesting = 150;

constexpr std::uint64_t kOnes = 0x0101010101010101;
constexpr std::uint64_t kHighBits = 0x8080808080808080;

/// Has a high bit set where a byte of `bytes` is zero (and perhaps above the lowest such byte).
constexpr std::uint64_t find_zero(std::uint64_t bytes) {
  return (bytes - kOnes) & ~bytes & kHighBits;
}

/// Nonzero if one of eight bytes is a quote, a backslash, a control character or no ASCII.
constexpr std::uint64_t find_special(std::uint64_t bytes) {
  const std::uint64_t control = (bytes - kOnes * 0x20) & ~bytes & kHighBits;
  return find_zero(bytes ^ (kOnes * '"')) | find_zero(bytes ^ (kOnes * '\\')) | control |
         (bytes & kHighBits);
}

/// Any fault ends the scan: faults are found and worded by the full parser.
class Scanner {
 public:
  Scanner(std::string_view text, JsonVisitor& visitor)
      : at_(text.data()), end_(text.data() + text.size()), visitor_(visitor) {}

  bool run() {
    skip_space();
    if (!scan_value(0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool take(char letter) {
    if (at_ == end_ || *at_ != letter) return false;
    ++at_;
    return true;
  }

  bool scan_value(int depth) {
    if (at_ == end_ || depth > kMaxNesting) return false;
    switch (*at_) {
      case '{': return scan_object(depth);
      case '[': return scan_array(depth);
      case '"': {
        std::string_view value;
        if (!take_string(value)) return false;
        visitor_.visit_string(value);
        return true;
      }
      case 't': return scan_word("true");
      case 'f': return scan_word("false");
      case 'n': return scan_word("null");
      default: {
        const char* const begin = at_;
        if (!skip_number()) return false;
        visitor_.visit_number({begin, at_});
        return true;
      }
    }
  }

  bool scan_word(std::string_view word) {
    if (!take_word(word)) return false;
    visitor_.visit_word(word);
    return true;
  }

  bool scan_object(int depth) {
    ++at_;
    visitor_.begin_object();
    skip_space();
    if (!take('}')) {
      do {
        std::string_view key;
        skip_space();
        if (at_ == end_ || *at_ != '"' || !take_string(key)) return false;
        const bool wanted = visitor_.visit_key(key);
        if (!take_colon()) return false;
        if (!(wanted ? scan_value(depth + 1) : skip_value(depth + 1))) return false;
        skip_space();
      } while (take(','));
      if (!take('}')) return false;
    }
    visitor_.end_object();
    return true;
  }

  bool take_colon() {
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return true;
  }

  bool scan_array(int depth) {
    ++at_;
    visitor_.begin_array();
    skip_space();
    if (!take(']')) {
      do {
        skip_space();
        if (!scan_value(depth + 1)) return false;
        skip_space();
      } while (take(','));
      if (!take(']')) return false;
    }
    visitor_.end_array();
    return true;
  }

  bool skip_value(int depth) {
    if (at_ == end_ || depth > kMaxNesting) return false;
    switch (*at_) {
      case '{': return skip_object(depth);
      case '[': return skip_array(depth);
      case '"': return skip_string();
      case 't': return take_word("true");
      case 'f': return take_word("false");
      case 'n': return take_word("null");
      default: return skip_number();
    }
  }

  bool skip_object(int depth) {
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      if (at_ == end_ || *at_ != '"' || !skip_string() || !take_colon()) return false;
      if (!skip_value(depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take('}');
  }

  bool skip_array(int depth) {
    ++at_;
    skip_space();
    if (take(']')) return true;
    do {
      skip_space();
      if (!skip_value(depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take(']');
  }

  bool take_word(std::string_view word) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0)
      return false;
    at_ += word.size();
    return true;
  }

  /// Numbers with exponents of three digits may be out of range.
  bool skip_number() {
    take('-');
    if (at_ == end_ || !is_digit(*at_)) return false;
    if (*at_ == '0')
      ++at_;
    else
      skip_digits();
    if (take('.')) {
      if (at_ == end_ || !is_digit(*at_)) return false;
      skip_digits();
    }
    if (at_ == end_ || (*at_ != 'e' && *at_ != 'E')) return true;
    ++at_;
    if (!take('-')) take('+');
    const char* const begin = at_;
    skip_digits();
    return at_ != begin && at_ - begin < 3;
  }

  void skip_digits() {
    while (at_ != end_ && is_digit(*at_)) ++at_;
  }

  /// Moves past the closing quote. Notes in is_plain_ whether the text is what it means.
  bool skip_string() {
    const char* const begin = at_++;
    is_plain_ = true;
    for (;;) {
      skip_plain();
      if (at_ == end_) return false;
      if (*at_ == '"') break;
      if (static_cast<unsigned char>(*at_) < 0x20) return false;
      is_plain_ = false;
      if (*at_ == '\\' && ++at_ == end_) return false;
      ++at_;
    }
    ++at_;
    // Escapes and other alphabets are rare, and a full parser knows their rules.
    return is_plain_ || nlohmann::json::accept(begin, at_);
  }

  void skip_plain() {
    while (end_ - at_ >= 8) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, at_, sizeof bytes);
      if (find_special(bytes) != 0) break;
      at_ += 8;
    }
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && *at_ >= 0x20 && *at_ < 0x7f) ++at_;
  }

  bool take_string(std::string_view& value) {
    const char* const begin = at_;
    if (!skip_string()) return false;
    value = {begin + 1, at_ - 1};
    if (is_plain_) return true;
    unescaped_ = nlohmann::json::parse(begin, at_).get<std::string>();
    value = unescaped_;
    return true;
  }

  const char* at_;
  const char* const end_;
  JsonVisitor& visitor_;
  bool is_plain_ = true;
  std::string unescaped_;
};

}  // namespace

bool scan_json(std::string_view text, JsonVisitor& visitor) { return Scanner(text, visitor).run(); }

}  // namespace bubblescope::traces
