// Names of modes, including the slots of eager.
#include "sim/ir/p2p_mode.h"

#include "sim/ir/number.h"

namespace bubblescope::inline sim {

std::string to_string(P2pMode mode, std::int32_t eager_slots) {
  std::string text = name_of(kP2pModes, mode);
  if (mode == P2pMode::kEager) text += ":" + std::to_string(eager_slots);
  return text;
}

std::optional<P2pRule> parse_p2p_rule(std::string_view text) {
  const std::size_t colon = text.find(':');
  const bool has_slots = colon != std::string_view::npos;
  const Named<P2pMode>* const known = find_named(kP2pModes, text.substr(0, colon));
  if (!known || has_slots != (known->choice == P2pMode::kEager)) return {};
  P2pRule rule{known->choice};
  if (!has_slots) return rule;
  const auto slots = parse_number<std::int32_t>(text.substr(colon + 1));
  if (!slots || *slots < 0) return {};
  rule.eager_slots = *slots;
  return rule;
}

}  // namespace bubblescope::inline sim
