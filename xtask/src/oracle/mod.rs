//! Placeholder.
use crate::Shop;
use crate::error::Error;
pub(crate) fn run(_shop: &mut Shop<'_>) -> Result<(), Error> {
    Ok(())
}
