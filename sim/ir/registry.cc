// Looks up names and suggests corrections.
#include "sim/ir/registry.h"

#include <cctype>
#include <numeric>

namespace bubblescope {

namespace {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string normalize_name(std::string_view name) {
  std::string normal;
  for (const char letter : name)
    normal +=
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return normal;
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = normalize_name(name);
  std::string nearest;
  std::size_t distance = std::max<std::size_t>(2, wanted.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const std::size_t found = edit_distance(wanted, normalize_name(candidate));
    if (found < distance) {
      distance = found;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string suggestion(std::string_view nearest) {
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace bubblescope
