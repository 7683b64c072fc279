// Looks for words in names.
#include "traces/measured/activity_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <vector>

#include "traces/files/observed_activity.h"
#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

bool is_letter(char sign) { return std::isalpha(static_cast<unsigned char>(sign)) != 0; }
bool is_upper(char sign) { return std::isupper(static_cast<unsigned char>(sign)) != 0; }

/// The letters of a name, and which of them begin a word: those after other signs, and capitals
/// such as the S in "cudaStreamWait" and "NCCLSend".
class Words {
 public:
  explicit Words(std::string_view name) {
    for (std::size_t at = 0; at < name.size(); ++at) {
      if (!is_letter(name[at])) continue;
      begins_.push_back(begins_word(name, at));
      letters_ += static_cast<char>(std::tolower(static_cast<unsigned char>(name[at])));
    }
    begins_.push_back(true);  // behind the last word
  }

  /// Whether words in a row are this one, which may have one of the usual endings.
  bool have(std::string_view wanted) const {
    for (std::size_t at = letters_.find(wanted); at != letters_.npos;
         at = letters_.find(wanted, at + 1))
      if (begins_[at] && is_ending(at + wanted.size())) return true;
    return false;
  }

 private:
  static bool begins_word(std::string_view name, std::size_t at) {
    if (at == 0 || !is_letter(name[at - 1])) return true;
    if (!is_upper(name[at])) return false;
    return !is_upper(name[at - 1]) ||
           (at + 1 < name.size() && is_letter(name[at + 1]) && !is_upper(name[at + 1]));
  }

  /// Whether a word ends here, or with an ending: "waits", "optimizers", "loading".
  bool is_ending(std::size_t at) const {
    constexpr std::array<std::string_view, 8> kEndings{"",   "s",  "es",  "r",
                                                       "rs", "er", "ers", "ing"};
    const auto next =
        std::find(begins_.begin() + static_cast<std::ptrdiff_t>(at), begins_.end(), true);
    const auto count = static_cast<std::size_t>(next - begins_.begin()) - at;
    const std::string_view rest = std::string_view(letters_).substr(at, count);
    return std::find(kEndings.begin(), kEndings.end(), rest) != kEndings.end();
  }

  std::string letters_;
  std::vector<bool> begins_;  ///< [letter], and behind the last
};

template <std::size_t Count>
bool has_word(std::string_view name, const std::array<std::string_view, Count>& wanted) {
  const Words words(name);
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](std::string_view word) { return words.have(word); });
}

}  // namespace

bool is_loading_data(std::string_view name) {
  constexpr std::array<std::string_view, 9> kWords{"dataload",        "loaddata", "loadbatch",
                                                   "batchload",       "batchgen", "batchgenerator",
                                                   "batchgeneration", "getbatch", "nextbatch"};
  return name == kLoadingData || has_word(name, kWords);
}

bool is_outer_activity(std::string_view name) {
  constexpr std::array<std::string_view, 12> kWords{
      "optim",    "optimize",     "optimise", "zerograd",     "zerogradient", "clipgrad",
      "gradnorm", "clipgradient", "adam",     "clipmaingrad", "adamw",        "fusedadam"};
  return is_named_like_collective(name) || is_loading_data(name) || has_word(name, kWords);
}

bool is_message_or_waiting(std::string_view name) {
  // With compounds that are written as one word.
  constexpr std::array<std::string_view, 27> kWords{"recv",
                                                    "receive",
                                                    "receiving",
                                                    "send",
                                                    "sendrecv",
                                                    "irecv",
                                                    "isend",
                                                    "wait",
                                                    "waitall",
                                                    "idle",
                                                    "bubble",
                                                    "stall",
                                                    "stalled",
                                                    "sync",
                                                    "synchronize",
                                                    "streamsynchronize",
                                                    "synchronization",
                                                    "sleep",
                                                    "barrier",
                                                    "nccl",
                                                    "gloo",
                                                    "comm",
                                                    "communicate",
                                                    "communication",
                                                    "transfer",
                                                    "exchange",
                                                    "memcpy"};
  return name.find("p2p") != name.npos || name.find("P2P") != name.npos || has_word(name, kWords);
}

std::string without_digits(std::string_view name) {
  std::string without;
  for (const char sign : name)
    if (std::isdigit(static_cast<unsigned char>(sign)) == 0) without += sign;
  return without;
}

}  // namespace bubblescope::traces
