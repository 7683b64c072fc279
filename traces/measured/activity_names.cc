// Looks for words in names.
#include "traces/measured/activity_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "traces/files/observed_activity.h"
#include "traces/measured/collective_names.h"
#include "traces/measured/name_words.h"

namespace bubblescope::traces {

namespace {

template <std::size_t Count>
bool has_word(std::string_view name, const std::array<std::string_view, Count>& wanted) {
  const NameWords words(name);
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
