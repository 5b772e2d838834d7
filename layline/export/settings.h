// Settings of a framework by name, from a command line or a file, that remember which of them were looked at: the rest
// is listed as ignored, not swallowed. Private to this folder.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace layline::exporting {

// A text, or a list of values. Numbers and flags are texts as they were written.
struct Value {
  std::string text;
  std::vector<Value> items;
  bool is_list = false;
};

class Settings {
 public:
  // Names the place in errors: "train.sh", "train.sh:12".
  explicit Settings(std::string where) : where_(std::move(where)) {}

  void set(const std::string& key, Value value) { values_[key] = std::move(value); }
  bool has(const std::string& key) const { return values_.contains(key); }
  bool empty() const { return values_.empty(); }

  // Nothing where the key is not there or null. Throw base::InputError naming place, key and what is allowed.
  std::optional<int64_t> whole(const std::string& key, int64_t lower, int64_t upper);
  std::optional<double> number(const std::string& key, double lower, double upper);
  std::optional<std::string> text(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  const std::vector<Value>* list(const std::string& key);

  int64_t whole_or(const std::string& key, int64_t fallback, int64_t lower, int64_t upper);
  std::string text_or(const std::string& key, const std::string& fallback);
  bool is_on(const std::string& key) { return flag(key).value_or(false); }
  bool is_auto(const std::string& key) { return text_of(key) == "auto"; }
  bool is_given(const std::string& key) { return get(key) != nullptr; }  // of command line flags, whatever follows them

  // The text, one of those allowed, or the fallback. Throws base::InputError naming the nearest for any other.
  std::string one_of(const std::string& key, const std::string& fallback, const std::vector<std::string>& allowed);

  // The first of several names that is there, or the first of them.
  std::string first_of(std::initializer_list<const char*> keys) const;

  // Looked at, without a use: what a layout does not depend on.
  void pass_over(std::initializer_list<const char*> keys);

  // "key value" of all that nobody looked at.
  std::vector<std::string> ignored() const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;
  const std::string& where() const { return where_; }

 private:
  const Value* get(const std::string& key);
  std::string text_of(const std::string& key) {  // "" of what is no text
    const Value* value = get(key);
    return value == nullptr || value->is_list ? "" : value->text;
  }

  std::string where_;
  std::map<std::string, Value> values_;
  std::set<std::string> asked_;
};

}  // namespace layline::exporting
