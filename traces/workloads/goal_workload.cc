// Reads GOAL text, by the grammar of LogGOPSim's txt2bin.
//
//   num_ranks 2
//   rank 0 {
//   l1: calc 100 cpu 0
//   l2: send 16b to 1 tag 7 cpu 0 nic 0
//   l2 requires l1          l2 starts after l1's end
//   l3 irequires l1         l3 starts after l1's start
//   }
//
// Labels may be left out, so may tag (0), cpu and nic. A receive may be from -1, any rank, and have
// the tag -1, any tag. Comments are // and /* */.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "sim/ir/number.h"
#include "traces/files/file.h"
#include "traces/files/quote.h"
#include "traces/workloads/workload.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxGoalRanks = 1 << 20;
constexpr std::int64_t kAnyOf32Bits =
    0xffffffff;                         ///< what stands for any rank or tag in binary GOAL
constexpr std::size_t kHead = 1 << 16;  ///< bytes that show what a file is

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }
bool is_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

/// A cursor over words, numbers and punctuation; the end of a line is a token, "\n".
class Tokens {
 public:
  Tokens(std::string_view text, const std::string& file) : text_(text), file_(file) { advance(); }

  std::string_view next() const { return token_; }
  std::size_t line() const { return line_; }
  bool at_end() const { return token_.empty(); }

  std::string_view take() {
    const std::string_view taken = token_;
    advance();
    return taken;
  }
  bool take_if(std::string_view word) {
    if (token_ != word) return false;
    advance();
    return true;
  }
  void expect(std::string_view word) {
    if (!take_if(word)) fail(fmt::format("'{}' was expected", word == "\n" ? "end of line" : word));
  }
  void skip_lines() {
    while (take_if("\n")) {
    }
  }
  std::int64_t take_number(std::int64_t min = 0) {
    std::int64_t value = 0;
    const auto read = std::from_chars(token_.data(), token_.data() + token_.size(), value);
    if (read.ec != std::errc() || read.ptr != token_.data() + token_.size() || value < min)
      fail(fmt::format("a whole number from {} to {} was expected", min,
                       std::numeric_limits<std::int64_t>::max()));
    advance();
    return value;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}, line {}: {}", file_, line_, what));
  }
  [[noreturn]] void fail(const std::string& what) const {
    const bool at_line_end = token_ == "\n";
    refuse(what + ", not " +
           (at_end()      ? "the end of the file"
            : at_line_end ? "the end of the line"
                          : quote(token_)));
  }

 private:
  void advance() {
    if (token_ == "\n") ++line_;
    skip_blanks();
    if (at_ == text_.size()) {
      token_ = {};
      return;
    }
    const std::size_t begin = at_++;
    const char first = text_[begin];
    const auto goes_on = [&](auto accepts) {
      while (at_ < text_.size() && accepts(text_[at_])) ++at_;
    };
    if (is_letter(first))
      goes_on([](char next) { return is_letter(next) || is_digit(next) || next == '_'; });
    else if (is_digit(first) || first == '-')
      goes_on(is_digit);
    token_ = text_.substr(begin, at_ - begin);
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_space(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = std::min(text_.find("*/", at_ + 2), text_.size());
        for (; at_ < end; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
        at_ = std::min(end + 2, text_.size());
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::string_view token_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

class GoalParser {
 public:
  GoalParser(std::string_view text, const std::string& file) : tokens_(text, file) {
    workload_.name = file;
    workload_.format = "goal";
  }

  Workload parse() && {
    tokens_.skip_lines();
    tokens_.expect("num_ranks");
    const std::int64_t ranks = tokens_.take_number();
    if (ranks < 1 || ranks > kMaxGoalRanks)
      tokens_.refuse(fmt::format("num_ranks is {}, 1 to {} can be read", ranks, kMaxGoalRanks));
    workload_.ranks.resize(static_cast<std::size_t>(ranks));
    for (tokens_.skip_lines(); !tokens_.at_end(); tokens_.skip_lines()) parse_rank();
    return std::move(workload_);
  }

 private:
  void parse_rank() {
    tokens_.expect("rank");
    const std::int64_t rank = tokens_.take_number();
    if (rank < 0 || rank >= std::ssize(workload_.ranks))
      tokens_.refuse(
          fmt::format("rank {} is not below num_ranks {}", rank, workload_.ranks.size()));
    jobs_ = &workload_.ranks[static_cast<std::size_t>(rank)];
    if (!jobs_->empty()) tokens_.refuse(fmt::format("rank {} is there a second time", rank));
    labels_.clear();
    tokens_.skip_lines();
    tokens_.expect("{");
    for (tokens_.skip_lines(); !tokens_.take_if("}"); tokens_.skip_lines()) parse_line();
  }

  void parse_line() {
    const std::string_view word = tokens_.next();
    if (word.empty()) tokens_.fail("'}' was expected");
    if (word == "calc" || word == "send" || word == "recv") return parse_job("");
    if (!is_letter(word.front())) tokens_.fail("a job or a label was expected");
    const std::string label(tokens_.take());
    if (tokens_.take_if(":")) return parse_job(label);
    const bool at_start = tokens_.next() == "irequires";
    if (!at_start && tokens_.next() != "requires")
      tokens_.fail("':', 'requires' or 'irequires' was expected");
    tokens_.take();
    const std::uint32_t job = find_label(label);
    const std::uint32_t awaited = find_label(std::string(tokens_.take()));
    WorkloadJob& waiting = (*jobs_)[job];
    (at_start ? waiting.starts_after : waiting.waits_for).push_back(awaited);
    end_line();
  }

  void parse_job(const std::string& label) {
    WorkloadJob job;
    job.name = label.empty() ? fmt::format("line {}", tokens_.line())
                             : fmt::format("{} (line {})", label, tokens_.line());
    const auto number = static_cast<std::uint32_t>(jobs_->size());
    if (!label.empty() && !labels_.emplace(label, number).second)
      tokens_.refuse(fmt::format("label {} is there a second time on this rank", quote(label)));
    const std::string_view kind = tokens_.take();
    if (kind == "calc")
      tokens_.take_number();
    else if (kind == "send" || kind == "recv")
      parse_message(job, kind == "send");
    else
      tokens_.refuse(fmt::format("'calc', 'send' or 'recv' was expected, not {}", quote(kind)));
    for (const std::string_view resource : {"cpu", "nic"})
      if (tokens_.take_if(resource)) tokens_.take_number();
    jobs_->push_back(std::move(job));
    end_line();
  }

  /// Parses "16b to 1 tag 7".
  void parse_message(WorkloadJob& job, bool sends) {
    job.kind = sends ? WorkloadKind::kSend : WorkloadKind::kReceive;
    job.bytes = tokens_.take_number();
    tokens_.expect("b");
    tokens_.expect(sends ? "to" : "from");
    job.peer = take_or_any(sends, "rank");
    job.tag = 0;
    if (tokens_.take_if("tag")) job.tag = take_or_any(sends, "tag");
  }

  std::optional<std::int64_t> take_or_any(bool sends, const char* what) {
    const std::int64_t number = tokens_.take_number(-1);
    if (number >= kAnyOf32Bits)
      tokens_.refuse(fmt::format("{} {} does not fit 32 bits", what, number));
    if (number < -1 || (number == -1 && sends))
      tokens_.refuse(
          fmt::format("{} is not a {} of a {}", number, what, sends ? "send" : "receive"));
    if (number == -1) return std::nullopt;
    return number;
  }

  std::uint32_t find_label(const std::string& label) {
    const auto found = labels_.find(label);
    if (found == labels_.end())
      tokens_.refuse(fmt::format("label {} is not one of this rank's so far; write its job before",
                                 quote(label)));
    return found->second;
  }

  void end_line() {
    if (tokens_.next() != "}") tokens_.expect("\n");
  }

  Tokens tokens_;
  Workload workload_;
  std::vector<WorkloadJob>* jobs_ = nullptr;
  std::map<std::string, std::uint32_t> labels_;  ///< of this rank
};

}  // namespace

bool is_goal(std::string_view text) {
  const std::string file;
  Tokens tokens(text.substr(0, kHead), file);
  tokens.skip_lines();
  return tokens.next() == "num_ranks";
}

bool is_goal_file(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_regular_file(path, unreadable)) return false;
  if (path.ends_with(".gz")) return is_goal(read_file(path));
  std::string head(kHead, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), std::ssize(head));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return is_goal(head);
}

Workload parse_goal(std::string_view text, const std::string& file) {
  return GoalParser(text, file).parse();
}

}  // namespace bubblescope::traces
