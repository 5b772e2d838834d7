// Strict reading of JSON objects: every key is asked for, every error says file, JSON path, what was found and what is
// allowed. For the sources that read JSON, here and in the folders that have files of their own: it shows the JSON
// library.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace layline::spec {

// Parses one document: a byte order mark is skipped; duplicate keys, more than 32 levels, numbers beyond a double and
// anything after the value are errors.
nlohmann::json parse_strict_json(std::string_view text, const std::string& where);

class JsonObject {
 public:
  // where: the file; path: "$" for the root.
  JsonObject(const nlohmann::json& value, std::string where, std::string path = "$");

  // Whether the key is there; it is then known to finish().
  bool has(const std::string& key);
  // The same, where null means that it is not.
  bool has_value(const std::string& key);

  // Each throws base::InputError when the value is of another type or out of range. A missing key is an error too, but
  // only finish() or require_all() says so, since a misspelt key explains more than a missing one; until then its value
  // is the lower bound, "" or empty.
  int64_t whole(const std::string& key, int64_t lower, int64_t upper);
  double number(const std::string& key, double lower, double upper);
  bool flag(const std::string& key);
  std::string text(const std::string& key);
  std::string name(const std::string& key);  // a text that is not empty
  std::vector<std::string> texts(const std::string& key);
  std::map<std::string, std::string> text_map(const std::string& key);
  std::map<std::string, double> number_map(const std::string& key);
  std::vector<double> numbers(const std::string& key, double lower, double upper);
  std::vector<int64_t> wholes(const std::string& key, int64_t lower, int64_t upper);
  std::vector<JsonObject> objects(const std::string& key);
  JsonObject object(const std::string& key);
  bool is_object(const std::string& key) const;
  bool is_list(const std::string& key) const;
  bool is_flag(const std::string& key) const;

  // One of `names`, as its index.
  template <typename Names>
  size_t choice(const std::string& key, const Names& names) {
    const std::string found = text(key);
    if (is_missing(key)) return 0;
    return choice_of(found, path_of(key), std::vector<std::string>(names.begin(), names.end()));
  }
  template <typename Names>
  std::vector<size_t> choices(const std::string& key, const Names& names) {
    std::vector<size_t> indices;
    for (const std::string& name : texts(key)) {
      indices.push_back(choice_of(name, path_of(key), std::vector<std::string>(names.begin(), names.end())));
    }
    return indices;
  }

  // Throws when a key was never asked for, with the nearest one that was; then when a key is missing.
  void finish() const;
  // Throws when a key is missing: for objects that have keys of others too.
  void require_all() const;

  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  const nlohmann::json* get(const std::string& key);  // nullptr when missing, which is noted
  const nlohmann::json& list(const std::string& key, const char* of_what);
  const nlohmann::json& map(const std::string& key, const char* of_what);
  bool is_missing(const std::string& key) const { return missing_.count(key) != 0; }
  std::string path_of(const std::string& key) const { return path_ + "." + key; }
  size_t choice_of(const std::string& found, const std::string& path, const std::vector<std::string>& names) const;
  double checked_number(const nlohmann::json& value, const std::string& path, double lower, double upper) const;
  int64_t checked_whole(const nlohmann::json& value, const std::string& path, int64_t lower, int64_t upper) const;

  const nlohmann::json& value_;
  std::string where_, path_;
  std::set<std::string> asked_, missing_;
};

}  // namespace layline::spec
