//! What is known of models: the built-in table, with the user's own laid over it.

use std::io;
use std::path::Path;

use agent_providers::Catalog;

use crate::error::CliError;

/// The user's own table in the data directory.
const OWN: &str = "models.json";

/// What `agent run` knows: the built-in table, `models.json` of the data directory where there is one, the file given.
pub(crate) fn of_run(data: &Path, given: Option<&Path>) -> Result<Catalog, CliError> {
    let own = data.join(OWN);
    let catalog = match read(&own) {
        Ok(text) => lay_over(Catalog::builtin(), &own, &text)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Catalog::builtin(),
        Err(cause) => return Err(CliError::ModelsFile { path: own, cause }),
    };
    with(catalog, given)
}

/// What a command without sessions knows: the built-in table and the file given.
pub(crate) fn of_wire(given: Option<&Path>) -> Result<Catalog, CliError> {
    with(Catalog::builtin(), given)
}

fn with(catalog: Catalog, given: Option<&Path>) -> Result<Catalog, CliError> {
    let Some(path) = given else { return Ok(catalog) };
    let text = read(path).map_err(|cause| CliError::ModelsFile { path: path.to_owned(), cause })?;
    lay_over(catalog, path, &text)
}

fn lay_over(catalog: Catalog, path: &Path, text: &str) -> Result<Catalog, CliError> {
    catalog.with_overrides(text).map_err(|cause| CliError::Models { path: path.to_owned(), cause })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file of the user's, named on the command line or beside sessions"
)]
fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}
