// Implements one flag with CLI11.
#include "tools/flags/command_flag.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <type_traits>
#include <utility>

namespace bubblescope::tools {

CommandFlag* CommandFlag::set(Setting setting) {
  settings_.push_back(std::move(setting));
  return this;
}

namespace {

/// The library's own check says of "8k" that it is out of range, and "INT:INT in [1 - 8]" in
/// --help.
template <class Number>
void add_check(CLI::Option& option, const RangeLimits<Number>& ends) {
  const auto says = [ends](const std::string& text) {
    std::ostringstream message;
    Number value{};
    const bool is_number = CLI::detail::lexical_cast(text, value);
    if (is_number && value >= ends.min_value && value <= ends.max_value) return std::string{};
    message << "'" << text << "' is not "
            << (std::is_integral_v<Number> ? "a whole number" : "a number") << " from "
            << ends.min_value << " to " << ends.max_value;
    return message.str();
  };
  option.check(CLI::Validator(says, ""));
  if (const std::string type = option.get_type_name();
      type.find("INT") != 0 && type.find("UINT") != 0 && type.find("FLOAT") != 0)
    return;
  std::ostringstream limits;
  limits << ends.min_value << ".." << ends.max_value;
  option.type_name(limits.str());
}

}  // namespace

CommandFlag* CommandFlag::check(const InRange& range) {
  return set([range](CLI::Option& option) {
    std::visit([&](const auto& ends) { add_check(option, ends); }, range.ends);
  });
}

CommandFlag* CommandFlag::type_name(std::string name) {
  return set([name = std::move(name)](CLI::Option& option) { option.type_name(name); });
}

CommandFlag* CommandFlag::required() {
  is_required_ = true;
  return set([](CLI::Option& option) { option.required(); });
}

CommandFlag* CommandFlag::delimiter(char sign) {
  return set([sign](CLI::Option& option) { option.delimiter(sign); });
}

CommandFlag* CommandFlag::takes_words() {
  takes_words_ = true;
  return this;
}

CommandFlag* CommandFlag::joins(std::vector<std::string> names) {
  joined_names_ = std::move(names);
  return this;
}

bool CommandFlag::is_joined(const std::string& word) const {
  return std::find(joined_names_.begin(), joined_names_.end(), word) != joined_names_.end();
}

std::size_t CommandFlag::count() const { return option_ == nullptr ? 0 : option_->count(); }

bool CommandFlag::has_name(std::string_view word) const {
  const std::string_view names = name_;
  for (std::size_t at = names.find(word); at != names.npos; at = names.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || names[at - 1] == ',') && (end == names.size() || names[end] == ','))
      return true;
  }
  return false;
}

void CommandFlag::add_to(CLI::App& app) {
  app.option_defaults()->group(heading_);
  option_ = make_(app, name_);
  // The library gives a flag with a list all words up to the next flag, also a positional one.
  if (name_.starts_with('-') && !takes_words_ && option_->get_expected_max() > 1)
    option_->expected(1)->allow_extra_args(false)->take_all();
  for (const Setting& setting : settings_) setting(*option_);
}

}  // namespace bubblescope::tools
