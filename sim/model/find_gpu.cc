// Takes the makers and brands off the names of products.
#include "sim/model/find_gpu.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "sim/ir/nearest_names.h"
#include "sim/ir/registry.h"

namespace bubblescope::inline sim {

namespace {

using Words = std::vector<std::string>;

/// The words of a name in lower case: "NVIDIA A100-SXM4-80GB" has four.
Words words_of(std::string_view name) {
  const std::string normal = normalize_name(name);
  const std::vector<std::string_view> words = words_in_name(normal);
  return {words.begin(), words.end()};
}

/// The words without the makers and brands with which they begin.
Words product_words(std::string_view name) {
  constexpr std::array<std::string_view, 5> kMakers{"nvidia", "amd", "tesla", "geforce",
                                                    "instinct"};
  Words words = words_of(name);
  const auto is_maker = [&](const std::string& word) {
    return std::find(kMakers.begin(), kMakers.end(), word) != kMakers.end();
  };
  words.erase(words.begin(), std::find_if_not(words.begin(), words.end(), is_maker));
  return words;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : "-") + word;
  return text;
}

bool has_word(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// Words that distinguish no device from another of the same name.
bool says_nothing(const std::string& word) {
  return word == "gpu" || word == "dgx" || word == "hgx" || word == "oam";
}

/// Whether one word begins with the other: "sxm" and "sxm4".
bool begin_alike(const std::string& one, const std::string& other) {
  constexpr std::size_t kMin = 3;
  return std::min(one.size(), other.size()) >= kMin &&
         (one.starts_with(other) || other.starts_with(one));
}

/// Whether a product has all words of the preset's name, and one that no name of the preset has.
bool says_more(const Words& product, const GpuDef& def) {
  std::vector<Words> names{words_of(def.name)};
  for (const std::string& alias : def.aliases) names.push_back(words_of(alias));
  const auto is_within = [&](const Words& name) {
    return std::all_of(name.begin(), name.end(),
                       [&](const std::string& word) { return has_word(product, word); });
  };
  if (std::none_of(names.begin(), names.end(), is_within)) return false;
  return std::any_of(product.begin(), product.end(), [&](const std::string& word) {
    return !says_nothing(word) && std::none_of(names.begin(), names.end(), [&](const Words& name) {
      return std::any_of(name.begin(), name.end(), [&](const std::string& known) {
        return known == word || begin_alike(known, word);
      });
    });
  });
}

}  // namespace

const GpuDef* find_gpu(std::string_view name) {
  const auto& registry = Registry<GpuDef>::instance();
  if (const GpuDef* def = registry.find(name)) return def;
  return registry.find(joined(product_words(name)));
}

std::string suggest_gpu(std::string_view name) {
  const auto& registry = Registry<GpuDef>::instance();
  const Words product = product_words(name);
  std::vector<const GpuDef*> suggested;
  std::vector<std::string> nearest;
  for (const std::string& each : nearest_names(joined(product), registry)) {
    const GpuDef* const def = registry.find(each);
    if (says_more(product, *def)) continue;
    if (std::find(suggested.begin(), suggested.end(), def) != suggested.end()) continue;
    suggested.push_back(def);
    nearest.push_back(each);
  }
  return suggestion(nearest);
}

}  // namespace bubblescope::inline sim
