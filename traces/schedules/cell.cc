// The cell grammar, anchored at both ends.
#include "traces/schedules/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ir/nearest_names.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";

Cell refuse(std::string fault) {
  Cell cell;
  cell.fault = std::move(fault);
  return cell;
}

Cell accept(const Op& op) {
  Cell cell;
  cell.ops[0] = op;
  cell.count = 1;
  return cell;
}

bool is_blank(char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }
bool is_name(char letter) {
  return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') || letter == '_';
}

/// Removes from `text` the longest prefix of letters that are `wanted`, and returns it.
std::string_view take(std::string_view& text, bool (*wanted)(char)) {
  std::size_t length = 0;
  while (length < text.size() && wanted(text[length])) ++length;
  const std::string_view front = text.substr(0, length);
  text.remove_prefix(length);
  return front;
}

/// Returns the number that `digits` spell; nullopt for none or one above `limit`.
std::optional<std::int32_t> to_number(std::string_view digits, std::int32_t limit) {
  std::int32_t number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (fault != std::errc{} || number > limit) return {};
  return number;
}

std::optional<OpKind> find_kind(std::string_view name) {
  for (int at = 0; at < kOpKinds; ++at) {
    const auto kind = static_cast<OpKind>(at);
    if (kind != OpKind::kIdle && code(kind) == name) return kind;
  }
  return {};
}

std::string unknown_kind(std::string_view name, CellGrammar grammar) {
  std::vector<std::string> known;
  for (int at = 0; at < kOpKinds; ++at) known.emplace_back(code(static_cast<OpKind>(at)));
  std::string hint = suggestion(nearest_names(name, known));
  if (hint.empty()) hint = "; kinds are F, B, I, W, SEND_F and so on";
  if (grammar == CellGrammar::kOwn)
    return fmt::format("has the unknown kind {}{}", quote(name), hint);
  return fmt::format(
      "has the unknown kind {}{} (known are the actions of PyTorch 2.6 to 2.15; where a later "
      "release wrote this, dump it there with format=\"compute_only\")",
      quote(name), hint);
}

std::string no_stage(std::string_view text) {
  if (text.starts_with('-')) return "has a negative stage; stages count from 0";
  return "does not begin with a stage; write its number first, as in 0F0";
}

/// Removes a slice such as ".1" from the front in our own grammar; false where it is malformed.
bool take_slice(Op& op, std::string_view& rest, CellGrammar grammar) {
  if (grammar == CellGrammar::kPytorch || !rest.starts_with('.')) return true;
  rest.remove_prefix(1);
  const auto slice = to_number(take(rest, is_digit), kMaxSlice);
  if (slice) op.slice = static_cast<std::int16_t>(*slice);
  return slice.has_value();
}

/// Parses what follows stage and kind: a micro-batch where the kind has one, a slice, nothing else.
Cell parse_numbers(Op op, std::string_view rest, CellGrammar grammar) {
  const std::string_view digits = take(rest, is_digit);
  if (!has_microbatch(op.kind) && !digits.empty())
    return refuse(fmt::format("has a micro-batch, which {0} does not take; write {1}{0}",
                              code(op.kind), op.stage));
  if (has_microbatch(op.kind)) {
    if (digits.empty() && rest.starts_with('-'))
      return refuse("has a negative micro-batch; micro-batches count from 0");
    if (digits.empty())
      return refuse(
          fmt::format("has no micro-batch; write its number last, as in {}", to_string(op)));
    const auto microbatch = to_number(digits, kMaxMicrobatch);
    if (!microbatch) return refuse(fmt::format("has a micro-batch above {}", kMaxMicrobatch));
    op.microbatch = *microbatch;
    if (!take_slice(op, rest, grammar))
      return refuse(fmt::format("has no slice from 0 to {} after its dot", kMaxSlice));
  }
  if (!rest.empty()) {
    const bool mixes_separators = rest.find('|') != rest.npos;
    return refuse(fmt::format("continues with {} after {}; {}", quote(rest), to_string(op),
                              mixes_separators ? "between ranks that | separates, ops stand apart "
                                                 "by blanks, without commas"
                                               : "remove that"));
  }
  return accept(op);
}

Cell parse_op(std::string_view text, CellGrammar grammar) {
  std::string_view rest = text;
  const std::string_view digits = take(rest, is_digit);
  if (digits.empty()) return refuse(no_stage(text));
  const auto stage = to_number(digits, kMaxStage);
  if (!stage) return refuse(fmt::format("has a stage above {}", kMaxStage));
  const std::string_view name = take(rest, is_name);
  if (name.empty()) return refuse("has no kind after its stage; write it as in 0F0");
  if (name == "BW")
    return refuse(
        fmt::format("is from before PyTorch 2.6, when BW was the full backward and B the "
                    "input gradient; write {}B{} for it, and I for the old file's B",
                    *stage, take(rest, is_digit)));
  const auto kind = find_kind(name);
  if (!kind) return refuse(unknown_kind(name, grammar));
  if (*kind == OpKind::kRecompute && grammar == CellGrammar::kPytorch)
    return refuse("recomputes, which PyTorch's grammar has no word for; use a native schedule");
  if (*kind == OpKind::kNorm || *kind == OpKind::kOptimizer) {
    if (grammar == CellGrammar::kPytorch)
      return refuse("belongs to the optimizer, of which PyTorch's lists know nothing; remove it");
  }
  if (is_copy(*kind) && grammar == CellGrammar::kPytorch)
    return refuse(
        "moves activations, which PyTorch's grammar has no word for; use a native schedule");
  Op op;
  op.stage = *stage;
  op.kind = *kind;
  return parse_numbers(op, rest, grammar);
}

Cell parse_pair(std::string_view text, CellGrammar grammar) {
  const std::size_t close = text.find(')');
  if (close == text.npos) return refuse("lacks its closing parenthesis");
  const std::string_view inside = text.substr(1, close - 1);
  if (inside.find('(') != text.npos || text.find(')', close + 1) != text.npos)
    return refuse("has parentheses within parentheses; pairs do not nest");
  if (text.substr(close + 1) != kOverlap)
    return refuse(fmt::format("must end in {} directly after its parenthesis", kOverlap));
  const std::size_t middle = inside.find(';');
  if (middle == text.npos || inside.find(';', middle + 1) != text.npos)
    return refuse("must hold two ops with one semicolon between them, as in (0F7;7B3)OVERLAP_F_B");
  Cell pair;
  for (const std::string_view half : {inside.substr(0, middle), inside.substr(middle + 1)}) {
    const Cell op = parse_op(strip(half), grammar);
    if (!op.sound()) return refuse(fmt::format("holds {}, which {}", quote(strip(half)), op.fault));
    pair.ops[pair.count++] = op.ops[0];
  }
  if (pair.ops[0].kind != OpKind::kForward || !gives_input_grad(pair.ops[1].kind))
    return refuse("must hold F first, then B or I, as in (0F7;7B3)OVERLAP_F_B");
  pair.ops[0].pairing = Pairing::kFirst;
  pair.ops[1].pairing = Pairing::kSecond;
  return pair;
}

void append_op(std::string& out, const Op& op) {
  const fmt::format_int stage(op.stage);
  out.append(stage.data(), stage.size());
  out += code(op.kind);
  if (!has_microbatch(op.kind)) return;
  const fmt::format_int microbatch(op.microbatch);
  out.append(microbatch.data(), microbatch.size());
  if (op.slice > 0) out += fmt::format(".{}", op.slice);
}

}  // namespace

Cell parse_cell(std::string_view text, CellGrammar grammar) {
  const std::string_view nothing = grammar == CellGrammar::kPytorch ? "" : "_";
  if (text == nothing) return accept({0, 0, 0, OpKind::kIdle});
  return text.starts_with('(') ? parse_pair(text, grammar) : parse_op(text, grammar);
}

std::size_t append_cell(std::string& out, const RankOrder& ops, std::size_t at,
                        CellGrammar grammar) {
  const Op& op = ops[at];
  if (op.kind == OpKind::kIdle) {
    if (grammar == CellGrammar::kOwn) out += '_';
    return at + 1;
  }
  const bool pair = op.pairing == Pairing::kFirst && at + 1 < ops.size() &&
                    ops[at + 1].pairing == Pairing::kSecond;
  if (!pair) {
    append_op(out, op);
    return at + 1;
  }
  out += '(';
  append_op(out, op);
  out += ';';
  append_op(out, ops[at + 1]);
  out += ')';
  out += kOverlap;
  return at + 2;
}

std::size_t count_cells(const RankOrder& ops, std::size_t count) {
  const auto end = ops.begin() + static_cast<std::ptrdiff_t>(count);
  return static_cast<std::size_t>(
      std::count_if(ops.begin(), end, [](const Op& op) { return op.pairing != Pairing::kSecond; }));
}

std::string_view strip(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace bubblescope::traces
