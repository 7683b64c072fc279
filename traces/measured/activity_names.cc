// Looks for words in the letters of names.
#include "traces/measured/activity_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "traces/files/observed_activity.h"
#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

template <std::size_t Count>
bool has_word(std::string_view name, const std::array<std::string_view, Count>& words) {
  const std::string letters = letters_of(name);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return letters.find(word) != letters.npos; });
}

}  // namespace

bool is_loading_data(std::string_view name) {
  constexpr std::array<std::string_view, 7> kWords{"dataload", "loaddata", "loadbatch", "batchload",
                                                   "batchgen", "getbatch", "nextbatch"};
  return name == kLoadingData || has_word(name, kWords);
}

bool is_outer_activity(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords{"optim",    "zerograd",     "clipgrad",
                                                   "gradnorm", "clipmaingrad", "adam"};
  return is_named_like_collective(name) || is_loading_data(name) || has_word(name, kWords);
}

bool is_message_or_waiting(std::string_view name) {
  constexpr std::array<std::string_view, 16> kWords{
      "recv",  "receive", "send", "wait", "idle", "bubble",   "stall",    "sync",
      "sleep", "barrier", "nccl", "gloo", "comm", "transfer", "exchange", "memcpy"};
  return name.find("p2p") != name.npos || name.find("P2P") != name.npos || has_word(name, kWords);
}

std::string without_digits(std::string_view name) {
  std::string without;
  for (const char sign : name)
    if (std::isdigit(static_cast<unsigned char>(sign)) == 0) without += sign;
  return without;
}

}  // namespace bubblescope::traces
