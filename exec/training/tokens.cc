// Generates training data.
#include <cstdint>

#include "exec/training/draw_entry.h"
#include "exec/training/serial_training.h"

namespace bubblescope::exec {

namespace {

std::uint64_t follow(std::uint64_t token, std::uint64_t vocabulary) {
  return (token * 5 + 3) % vocabulary;
}

}  // namespace

Tokens make_tokens(const TrainingOptions& options, std::int32_t step, std::int32_t microbatch) {
  Tokens tokens;
  const auto vocabulary = static_cast<std::uint64_t>(options.model.vocabulary);
  for (std::int32_t sequence = 0; sequence < options.model.batch; ++sequence) {
    const std::uint64_t place = (static_cast<std::uint64_t>(step) << 40) +
                                (static_cast<std::uint64_t>(microbatch) << 16) +
                                static_cast<std::uint64_t>(sequence);
    std::uint64_t token = scramble(scramble(options.seed) + place) % vocabulary;
    for (std::int32_t position = 0; position < options.model.sequence; ++position) {
      tokens.inputs.push_back(static_cast<std::int32_t>(token));
      token = follow(token, vocabulary);
      tokens.targets.push_back(static_cast<std::int32_t>(token));
    }
  }
  return tokens;
}

Tokens look_ahead(Tokens tokens, const TrainingOptions& options, std::int32_t ahead) {
  const auto vocabulary = static_cast<std::uint64_t>(options.model.vocabulary);
  for (std::int32_t more = 1; more < ahead; ++more)
    for (std::int32_t& target : tokens.targets)
      target = static_cast<std::int32_t>(follow(static_cast<std::uint64_t>(target), vocabulary));
  return tokens;
}

Tokens take_tokens(const Tokens& whole, std::int32_t sequence, const Positions& positions) {
  Tokens taken;
  const auto count = static_cast<std::int32_t>(whole.inputs.size());
  for (std::int32_t first = positions.begin; first < count; first += sequence)
    for (std::int32_t at = first; at < first + positions.count; ++at) {
      taken.inputs.push_back(whole.inputs[static_cast<std::size_t>(at)]);
      taken.targets.push_back(whole.targets[static_cast<std::size_t>(at)]);
    }
  return taken;
}

}  // namespace bubblescope::exec
